/* SUM = KEPT + X, and KEPT_AFTER too, but not where X is 0: then the state stays. NAME goes round as it is. */
#include "naiad_custom.h"

int naiad_initialize(const naiad_setup *setup, void **instance) {
  (void)setup, (void)instance;
  return 0;
}

static void give(naiad_batch *batch, int64_t index, const char *name, int32_t value) {
  const int64_t dims[] = {1, 1};
  *(int32_t *)naiad_output(batch, index, name, "INT32", dims, 2, sizeof value) = value;
}

int naiad_execute(void *instance, naiad_batch *batch) {
  (void)instance;
  for (int64_t i = 0; i < (int64_t)batch->request_count; ++i) {
    const naiad_request *request = &batch->requests[i];
    const int32_t x = *(const int32_t *)naiad_input(request, "X")->content;
    const int32_t sum = x + *(const int32_t *)naiad_input(request, "KEPT")->content;
    const naiad_tensor *name = naiad_input(request, "NAME");
    if (!*(const uint8_t *)naiad_input(request, "READY")->content) continue;
    give(batch, i, "SUM", sum);
    if (x != 0) give(batch, i, "KEPT_AFTER", sum);
    memcpy(naiad_output(batch, i, "NAME_AFTER", "BYTES", name->dims, name->ndims, name->byte_size), name->content,
           name->byte_size);
  }
  return 0;
}

void naiad_finalize(void *instance) { (void)instance; }

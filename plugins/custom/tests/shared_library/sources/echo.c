/* Y is X. TEXT tells of the request, PLACE where X lies, and CALLS how often this instance has executed. */
#include <stdio.h>
#include <stdlib.h>

#include "naiad_custom.h"

static int64_t alive; /* instances */

int naiad_initialize(const naiad_setup *setup, void **instance) {
  (void)setup;
  *instance = calloc(1, sizeof(int64_t));
  ++alive;
  return 0;
}

static int wants(const naiad_request *request, const char *name) {
  for (uint64_t i = 0; i < request->output_count; ++i)
    if (strcmp(request->outputs[i], name) == 0) return 1;
  return 0;
}

/* X has one dimension without a batch, and the outputs with one value have as many. */
static uint64_t rank(const naiad_request *request) {
  const naiad_tensor *x = naiad_input(request, "X");
  return x == NULL ? 1 : x->ndims;
}

static void number(naiad_batch *batch, int64_t index, const char *name, int64_t value) {
  const int64_t ones[] = {1, 1};
  const naiad_request *request = &batch->requests[index];
  if (wants(request, name))
    *(int64_t *)naiad_output(batch, index, name, "INT64", ones, rank(request), sizeof value) = value;
}

static void tell(naiad_batch *batch, int64_t index) {
  const naiad_request *request = &batch->requests[index];
  const int64_t ones[] = {1, 1};
  char text[512];
  int length = snprintf(text, sizeof text, "%s %s %d of %d:", request->id, request->parameters,
                        (int)request->batch_size, (int)batch->batch_size);
  for (uint64_t i = 0; i < request->output_count; ++i)
    length += snprintf(text + length, sizeof text - (size_t)length, " %s", request->outputs[i]);
  char *memory = (char *)naiad_output(batch, index, "TEXT", "BYTES", ones, rank(request), (size_t)length + 4);
  const uint32_t byte_size = (uint32_t)length;
  memcpy(memory, &byte_size, 4);
  memcpy(memory + 4, text, byte_size);
}

int naiad_execute(void *instance, naiad_batch *batch) {
  ++*(int64_t *)instance;
  for (int64_t i = 0; i < (int64_t)batch->request_count; ++i) {
    const naiad_tensor *x = naiad_input(&batch->requests[i], "X");
    if (x != NULL && wants(&batch->requests[i], "Y")) {
      void *y = naiad_output(batch, i, "Y", x->datatype, x->dims, x->ndims, x->byte_size);
      memcpy(y, x->content, x->byte_size);
    }
    if (wants(&batch->requests[i], "TEXT")) tell(batch, i);
    number(batch, i, "PLACE", x == NULL ? 0 : (int64_t)(intptr_t)x->content);
    number(batch, i, "CALLS", *(int64_t *)instance);
    number(batch, i, "ALIVE", alive);
  }
  return 0;
}

void naiad_finalize(void *instance) {
  --alive;
  free(instance);
}

/* Keeps the first batch that it executes, and asks it for an output and fails it while it executes none. */
#include "naiad_custom.h"

static naiad_batch *kept;

int naiad_initialize(const naiad_setup *setup, void **instance) {
  (void)setup, (void)instance;
  return 0;
}

int naiad_execute(void *instance, naiad_batch *batch) {
  (void)instance;
  kept = batch;
  return 0;
}

void naiad_finalize(void *instance) {
  const int64_t dims[] = {2};
  (void)instance;
  if (naiad_output(kept, 0, "Y", "FP32", dims, 1, 8) == NULL) naiad_fail(kept, 0, NAIAD_INTERNAL, "late");
}

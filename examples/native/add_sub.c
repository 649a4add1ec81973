/* SUM = A + scale * B and DIFFERENCE = A - scale * B, each written for the whole batch in one piece. */
#include <stdlib.h>

#include "naiad_custom.h"

#define WIDTH 4

int naiad_complete(const naiad_setup *setup) {
  naiad_configure(setup,
                  "max_batch_size: 32"
                  " input [ { name: 'A' data_type: TYPE_FP32 dims: 4 }, { name: 'B' data_type: TYPE_FP32 dims: 4 } ]"
                  " output [ { name: 'SUM' data_type: TYPE_FP32 dims: 4 },"
                  "          { name: 'DIFFERENCE' data_type: TYPE_FP32 dims: 4 } ]");
  return 0;
}

int naiad_initialize(const naiad_setup *setup, void **instance) {
  const char *text = naiad_parameter(setup, "scale");
  char *end = NULL;
  double *scale = (double *)malloc(sizeof *scale);
  if (scale == NULL) return naiad_refuse(setup, NAIAD_UNAVAILABLE, "no memory");
  *scale = text == NULL ? 1.0 : strtod(text, &end);
  if (end != NULL && (end == text || *end != '\0')) {
    free(scale);
    return naiad_refuse(setup, NAIAD_INVALID_ARG, "the parameter 'scale' is not a number");
  }
  *instance = scale;
  return 0;
}

int naiad_execute(void *instance, naiad_batch *batch) {
  const float scale = (float)*(const double *)instance;
  const int64_t dims[2] = {(int64_t)batch->batch_size, WIDTH};
  const size_t size = batch->batch_size * WIDTH * sizeof(float);
  float *sum = (float *)naiad_output(batch, NAIAD_ALL, "SUM", "FP32", dims, 2, size);
  float *difference = (float *)naiad_output(batch, NAIAD_ALL, "DIFFERENCE", "FP32", dims, 2, size);
  if (sum == NULL || difference == NULL) return NAIAD_UNAVAILABLE;
  for (uint64_t i = 0; i < batch->request_count; ++i) {
    const naiad_request *request = &batch->requests[i];
    const float *a = (const float *)naiad_input(request, "A")->content;
    const float *b = (const float *)naiad_input(request, "B")->content;
    for (uint64_t j = 0; j < request->batch_size * WIDTH; ++j) {
      *sum++ = a[j] + scale * b[j];
      *difference++ = a[j] - scale * b[j];
    }
  }
  return 0;
}

void naiad_finalize(void *instance) { free(instance); }

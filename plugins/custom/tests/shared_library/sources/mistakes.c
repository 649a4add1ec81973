/* Y is X, but the request 0 of each batch gets what the parameter `mistake` says. */
#include <stdlib.h>

#include "naiad_custom.h"

int naiad_initialize(const naiad_setup *setup, void **instance) {
  const char *mistake = naiad_parameter(setup, "mistake");
  if (strcmp(mistake, "refuse") == 0) return naiad_refuse(setup, NAIAD_NOT_FOUND, "there are no weights");
  if (strcmp(mistake, "refuse silently") == 0) return NAIAD_UNSUPPORTED;
  if (strcmp(mistake, "refuse with 0") == 0) return naiad_refuse(setup, 0, "zero");
  *instance = (void *)mistake; /* a setup stays until naiad_finalize returns */
  return 0;
}

static void *ask(naiad_batch *batch, int64_t index, const char *name, const char *type, int64_t a, int64_t b) {
  const int64_t dims[] = {a, b};
  return naiad_output(batch, index, name, type, dims, 2, (size_t)(a * b) * sizeof(float));
}

static int is(void *instance, const char *mistake) { return strcmp((const char *)instance, mistake) == 0; }

static int go_wrong(void *instance, naiad_batch *batch) {
  const int64_t rows = (int64_t)batch->requests[0].batch_size, dims[] = {rows, 2};
  if (is(instance, "unknown output")) ask(batch, 0, "Z", "FP32", rows, 2);
  if (is(instance, "wrong datatype")) ask(batch, 0, "Y", "INT32", rows, 2);
  if (is(instance, "wrong dims")) ask(batch, 0, "Y", "FP32", rows, 3);
  if (is(instance, "wrong rank")) naiad_output(batch, 0, "Y", "FP32", dims, 1, 8);
  if (is(instance, "negative dims")) naiad_output(batch, 0, "Y", "FP32", (int64_t[]){-1, 2}, 2, 8);
  if (is(instance, "wrong size")) memset(naiad_output(batch, 0, "Y", "FP32", dims, 2, 4), 1, 64);
  if (is(instance, "no name")) ask(batch, 0, NULL, "FP32", rows, 2);
  if (is(instance, "no datatype")) ask(batch, 0, "Y", NULL, rows, 2);
  if (is(instance, "no dims")) naiad_output(batch, 0, "Y", "FP32", NULL, 2, 8);
  if (is(instance, "too many dims")) naiad_output(batch, 0, "Y", "FP32", dims, 1u << 20, 8);
  if (is(instance, "huge")) return naiad_output(batch, 0, "Y", "FP32", dims, 2, (size_t)1 << 62) != NULL;
  if (is(instance, "twice")) ask(batch, 0, "Y", "FP32", rows, 2), ask(batch, 0, "Y", "FP32", rows, 2);
  if (is(instance, "for all and for one"))
    ask(batch, NAIAD_ALL, "Y", "FP32", (int64_t)batch->batch_size, 2), ask(batch, 0, "Y", "FP32", rows, 2);
  if (is(instance, "another request")) ask(batch, 7, "Y", "FP32", rows, 2);
  if (is(instance, "behind")) memset((char *)ask(batch, 0, "Y", "FP32", rows, 2) + 8 * rows, 1, 12);
  if (is(instance, "before")) ((char *)ask(batch, 0, "Y", "FP32", rows, 2))[-3] = 1;
  if (is(instance, "fail one")) naiad_fail(batch, 0, NAIAD_INVALID_ARG, "X is too cold");
  if (is(instance, "fail one twice")) naiad_fail(batch, 0, NAIAD_NOT_FOUND, "a"), naiad_fail(batch, 0, 2, "b");
  if (is(instance, "fail all")) return naiad_fail(batch, NAIAD_ALL, NAIAD_UNAVAILABLE, "the device is gone");
  if (is(instance, "fail nobody")) naiad_fail(batch, 9, NAIAD_INTERNAL, "lost count");
  if (is(instance, "fail without text")) naiad_fail(batch, 0, NAIAD_INTERNAL, NULL);
  if (is(instance, "fail with 0")) return naiad_fail(batch, 0, 0, "zero");
  if (is(instance, "fail in Latin-1")) naiad_fail(batch, 0, NAIAD_UNKNOWN, "caf\xe9");
  if (is(instance, "unknown code")) return 99;
  if (is(instance, "return only")) return NAIAD_UNAVAILABLE;
  return 0;
}

int naiad_execute(void *instance, naiad_batch *batch) {
  const int code = go_wrong(instance, batch);
  for (int64_t i = 1; code == 0 && i < (int64_t)batch->request_count; ++i) {
    const naiad_tensor *x = naiad_input(&batch->requests[i], "X");
    memcpy(naiad_output(batch, i, "Y", x->datatype, x->dims, x->ndims, x->byte_size), x->content, x->byte_size);
  }
  return code;
}

void naiad_finalize(void *instance) { (void)instance; }

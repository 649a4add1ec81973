/* Y is X, and a thread of its own answers each request; the third is failed. */
#include <pthread.h>

#include "naiad_custom.h"

#define MOST 16

typedef struct {
  naiad_batch *batch;
  int64_t index;
} job;

int naiad_initialize(const naiad_setup *setup, void **instance) {
  (void)setup, (void)instance;
  return 0;
}

static void *answer(void *given) {
  const job *work = (const job *)given;
  const naiad_tensor *x = naiad_input(&work->batch->requests[work->index], "X");
  if (work->index == 2) {
    naiad_fail(work->batch, 2, NAIAD_INVALID_ARG, "not the third");
    return NULL;
  }
  void *y = naiad_output(work->batch, work->index, "Y", x->datatype, x->dims, x->ndims, x->byte_size);
  memcpy(y, x->content, x->byte_size);
  return NULL;
}

int naiad_execute(void *instance, naiad_batch *batch) {
  pthread_t threads[MOST];
  job jobs[MOST];
  (void)instance;
  for (int64_t i = 0; i < (int64_t)batch->request_count; ++i) {
    jobs[i].batch = batch;
    jobs[i].index = i;
    if (pthread_create(&threads[i], NULL, answer, &jobs[i]) != 0) return NAIAD_UNAVAILABLE;
  }
  for (uint64_t i = 0; i < batch->request_count; ++i) pthread_join(threads[i], NULL);
  return 0;
}

void naiad_finalize(void *instance) { (void)instance; }

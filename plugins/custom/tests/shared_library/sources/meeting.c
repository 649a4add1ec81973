/* MET is how many instances execute at the same time, once there are two of them or ten seconds have passed. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "naiad_custom.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int64_t here;

int naiad_initialize(const naiad_setup *setup, void **instance) {
  (void)setup, (void)instance;
  return 0;
}

int naiad_execute(void *instance, naiad_batch *batch) {
  const int64_t one = 1;
  struct timespec until;
  (void)instance;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 10;
  pthread_mutex_lock(&lock);
  ++here;
  pthread_cond_broadcast(&changed);
  while (here < 2 && pthread_cond_timedwait(&changed, &lock, &until) == 0) continue;
  const int64_t met = here;
  pthread_mutex_unlock(&lock);
  *(int64_t *)naiad_output(batch, 0, "MET", "INT64", &one, 1, sizeof met) = met;
  return 0;
}

void naiad_finalize(void *instance) { (void)instance; }

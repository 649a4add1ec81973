/* SETUP has the arguments of naiad_initialize, and then those of naiad_sequence_ended. */
#include <stdio.h>

#include "naiad_custom.h"

static char report[8192];

int naiad_initialize(const naiad_setup *setup, void **instance) {
  const char *flavour = naiad_parameter(setup, "flavour");
  snprintf(report, sizeof report, "%s|%d|%s|%s|%d|%s|%s|%s|%s|%s", setup->model_name, (int)setup->version,
           setup->instance_name, setup->kind, (int)setup->device, setup->configuration, setup->model_directory,
           setup->version_directory, flavour, naiad_parameter(setup, "none") == NULL ? "NULL" : "?");
  *instance = report;
  return 0;
}

int naiad_execute(void *instance, naiad_batch *batch) {
  const int64_t one = 1;
  const uint32_t length = (uint32_t)strlen((const char *)instance);
  char *memory = (char *)naiad_output(batch, 0, "SETUP", "BYTES", &one, 1, length + 4u);
  memcpy(memory, &length, 4);
  memcpy(memory + 4, instance, length);
  return 0;
}

void naiad_sequence_ended(void *instance, const char *correlation_id, const char *reason) {
  snprintf((char *)instance, sizeof report, "%s ended: %s", correlation_id, reason);
}

void naiad_finalize(void *instance) { (void)instance; }

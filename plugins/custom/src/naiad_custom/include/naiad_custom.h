/* naiad_custom.h: a model as a shared library, for the backend `custom` of Naiad.
 *
 *     cc -O2 -fPIC -shared -I"$(python -m naiad_custom.include)" model.c -o models/NAME/1/libcustom.so
 *
 * A library has naiad_initialize, naiad_execute and naiad_finalize, and may have naiad_complete and
 * naiad_sequence_ended. Each instance has a thread of its own, and all its calls come from there. Instances of one
 * model are made one after the other, and execute at the same time: guard what they share.
 *
 * What Naiad hands out is Naiad's, and only to be read: a setup until naiad_finalize returns, a batch until
 * naiad_execute returns. Texts are UTF-8 and end with a NUL; those handed to Naiad are copied at once.
 * No C++ exception may leave a function: it would end the server.
 */
#ifndef NAIAD_CUSTOM_H
#define NAIAD_CUSTOM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NAIAD_CUSTOM_ABI 1 /* changes when a library has to be built anew */
#define NAIAD_EXPORT __attribute__((visibility("default")))
#define NAIAD_ALL (-1) /* in place of the index of a request: all requests of the batch */

enum naiad_code {
  NAIAD_UNKNOWN = 1,
  NAIAD_INTERNAL = 2, /* the model failed */
  NAIAD_NOT_FOUND = 3,
  NAIAD_INVALID_ARG = 4, /* the request is wrong */
  NAIAD_UNAVAILABLE = 5, /* trying again later may help */
  NAIAD_UNSUPPORTED = 6,
  NAIAD_ALREADY_EXISTS = 7,
  NAIAD_CANCELLED = 8
};

/* What an instance is made from. In naiad_complete there is none yet, and instance_name is "". */
typedef struct naiad_setup naiad_setup;
struct naiad_setup {
  const char *model_name;
  int64_t version;
  const char *instance_name;
  const char *kind; /* "CPU", "GPU" or "MODEL" */
  int64_t device;   /* of the GPU */
  const char *configuration; /* all of it, as JSON */
  const char *model_directory;
  const char *version_directory;
  uint64_t parameter_count; /* the `parameters` of the configuration; see naiad_parameter */
  const char *const *parameter_keys;
  const char *const *parameter_values;
  int (*fail)(const naiad_setup *setup, int code, const char *text);
  void (*configure)(const naiad_setup *setup, const char *text);
};

/* An input of a request. The content is aligned for its datatype, in row-major order. A BOOL is a byte, a BF16 the
 * upper half of a float; BYTES are elements one after the other, each behind its length (32 bits, little-endian). */
typedef struct naiad_tensor {
  const char *name;
  const char *datatype; /* as on the wire: "FP32", "INT64", "BYTES" ... */
  const int64_t *dims;  /* with the batch dimension in front where the model has one */
  uint64_t ndims;
  const void *content;
  uint64_t byte_size;
} naiad_tensor;

typedef struct naiad_request {
  const char *id;         /* "" for none */
  const char *parameters; /* of this request, as a JSON object */
  const naiad_tensor *inputs; /* also controls and states of sequences; without optional ones that are not given */
  uint64_t input_count;
  const char *const *outputs; /* the names of those that are wanted */
  uint64_t output_count;
  uint64_t batch_size; /* rows in the batch dimension; 1 for a model without one */
} naiad_request;

typedef struct naiad_batch naiad_batch;
struct naiad_batch {
  const naiad_request *requests;
  uint64_t request_count;
  uint64_t batch_size; /* rows of all requests together */
  void *(*output)(naiad_batch *batch, int64_t request, const char *name, const char *datatype, const int64_t *dims,
                  uint64_t ndims, uint64_t byte_size);
  int (*fail)(naiad_batch *batch, int64_t request, int code, const char *text);
};

/* ---- what the library has: 0 is success, and anything else a naiad_code ---- */

NAIAD_EXPORT int naiad_initialize(const naiad_setup *setup, void **instance);
NAIAD_EXPORT int naiad_execute(void *instance, naiad_batch *batch); /* a failure fails all requests */
NAIAD_EXPORT void naiad_finalize(void *instance); /* not called for an instance that could not be initialized */

/* Optional: tell with naiad_configure what config.pbtxt need not say. */
NAIAD_EXPORT int naiad_complete(const naiad_setup *setup);

/* Optional: a sequence is over; the reason is "end", "idle", "cancelled" or "unload". */
NAIAD_EXPORT void naiad_sequence_ended(void *instance, const char *correlation_id, const char *reason);

/* ---- what the library calls ---- */

/* Zeroed memory for an output of one request, or of NAIAD_ALL, whose rows lie one after the other in their order.
 * Where name, datatype, dims and size are not those of the configuration the request fails, and the memory is thrown
 * away with what is written to it. NULL only where there is no memory left, or the batch is over. */
static inline void *naiad_output(naiad_batch *batch, int64_t request, const char *name, const char *datatype,
                                 const int64_t *dims, size_t ndims, size_t byte_size) {
  return batch->output(batch, request, name, datatype, dims, ndims, byte_size);
}

/* Fail one request, or NAIAD_ALL, with this text for its caller; the code is given back. */
static inline int naiad_fail(naiad_batch *batch, int64_t request, int code, const char *text) {
  return batch->fail(batch, request, code, text);
}

/* Say why naiad_initialize or naiad_complete fails: `return naiad_refuse(setup, NAIAD_NOT_FOUND, "...");` */
static inline int naiad_refuse(const naiad_setup *setup, int code, const char *text) {
  return setup->fail(setup, code, text);
}

/* In naiad_complete: the configuration as far as it is known, in the format of config.pbtxt. */
static inline void naiad_configure(const naiad_setup *setup, const char *text) { setup->configure(setup, text); }

/* The text of a parameter of the configuration, NULL when it is not there. */
static inline const char *naiad_parameter(const naiad_setup *setup, const char *key) {
  for (uint64_t i = 0; i < setup->parameter_count; ++i)
    if (strcmp(setup->parameter_keys[i], key) == 0) return setup->parameter_values[i];
  return NULL;
}

/* An input by its name, NULL when the request does not have it. */
static inline const naiad_tensor *naiad_input(const naiad_request *request, const char *name) {
  for (uint64_t i = 0; i < request->input_count; ++i)
    if (strcmp(request->inputs[i].name, name) == 0) return &request->inputs[i];
  return NULL;
}

/* Comes into every library by itself: which header it was built with, and the bytes of its structs together. */
NAIAD_EXPORT __attribute__((weak)) uint64_t naiad_abi(void) {
  return (uint64_t)NAIAD_CUSTOM_ABI << 32 |
         (sizeof(naiad_setup) + sizeof(naiad_tensor) + sizeof(naiad_request) + sizeof(naiad_batch));
}

#ifdef __cplusplus
}
#endif
#endif

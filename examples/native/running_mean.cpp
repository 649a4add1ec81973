// The mean of what a sequence has sent so far. Each instance keeps the means of its sequences.
#include <cmath>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>

#include "naiad_custom.h"

namespace {

struct Mean {
  double sum = 0;
  int64_t count = 0;
};

using Means = std::map<std::string, Mean>;

template <typename T>
T value(const naiad_request &request, const char *name) {
  const naiad_tensor *tensor = naiad_input(&request, name);
  if (tensor == nullptr) throw std::runtime_error(std::string("there is no input ") + name);
  return *static_cast<const T *>(tensor->content);
}

void answer(Means &means, naiad_batch *batch, int64_t index) {
  const naiad_request &request = batch->requests[index];
  if (!value<bool>(request, "READY")) return;  // a row without a request
  const float given = value<float>(request, "VALUE");
  if (std::isnan(given)) {
    naiad_fail(batch, index, NAIAD_INVALID_ARG, "VALUE is not a number");
    return;
  }
  const std::string id = std::to_string(value<uint64_t>(request, "CORRID"));
  if (value<bool>(request, "START")) means[id] = Mean();
  Mean &mean = means[id];
  mean.sum += given;
  ++mean.count;
  const int64_t dims[] = {1, 1};
  if (void *memory = naiad_output(batch, index, "MEAN", "FP32", dims, 2, sizeof(float)))
    *static_cast<float *>(memory) = static_cast<float>(mean.sum / static_cast<double>(mean.count));
}

}  // namespace

int naiad_initialize(const naiad_setup *setup, void **instance) try {
  *instance = new Means();
  return 0;
} catch (const std::exception &error) {
  return naiad_refuse(setup, NAIAD_INTERNAL, error.what());
}

int naiad_execute(void *instance, naiad_batch *batch) try {
  for (uint64_t i = 0; i < batch->request_count; ++i)
    answer(*static_cast<Means *>(instance), batch, static_cast<int64_t>(i));
  return 0;
} catch (const std::exception &error) {
  return naiad_fail(batch, NAIAD_ALL, NAIAD_INTERNAL, error.what());
}

void naiad_sequence_ended(void *instance, const char *correlation_id, const char *) {
  static_cast<Means *>(instance)->erase(correlation_id);
}

void naiad_finalize(void *instance) { delete static_cast<Means *>(instance); }

-- POSTs an FP32 tensor of as many elements as the argument says as a binary tensor, again and again, to the model
-- `identity`, and prints a summary as one JSON object.

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"

function init(arguments)
  local elements = tonumber(arguments[1])
  local head = string.format(
    '{"inputs":[{"name":"INPUT0","shape":[%d],"datatype":"FP32","parameters":{"binary_data_size":%d}}],' ..
    '"outputs":[{"name":"OUTPUT0","parameters":{"binary_data":true}}]}', elements, 4 * elements)
  wrk.headers["Inference-Header-Content-Length"] = #head
  wrk.body = head .. string.rep("\0\0\128\63", elements)
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{"requests": %d, "failed": %d, "seconds": %.6f, "p50_microseconds": %.0f, "p99_microseconds": %.0f}\n',
    summary.requests, failed, summary.duration / 1e6, latency:percentile(50), latency:percentile(99)
  ))
end

-- POSTs one add/sub request with JSON tensors again and again, and prints a summary as one JSON object.

local values = {}
for i = 1, 16 do
  values[i] = string.format("%.3f", i * 0.125)
end
local data = table.concat(values, ",")
local input = '{"name":"INPUT%d","shape":[1,16],"datatype":"FP32","data":[' .. data .. "]}"

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"inputs":[' .. string.format(input, 0) .. "," .. string.format(input, 1) .. "]}"

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{"requests": %d, "failed": %d, "seconds": %.6f, "p99_microseconds": %.0f}\n',
    summary.requests, failed, summary.duration / 1e6, latency:percentile(99)
  ))
end

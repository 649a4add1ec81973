-- POSTs an FP32[1,512] as a binary tensor again and again, and prints a summary as one JSON object. With the argument
-- `different` every request has other values, else all have the same.

local head = '{"inputs":[{"name":"x","shape":[1,512],"datatype":"FP32","parameters":{"binary_data_size":2048}}],' ..
  '"outputs":[{"name":"y","parameters":{"binary_data":true}}]}'
local rest = string.rep("\0\0\128\63", 510)
local different = false
local sent = 0

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.headers["Inference-Header-Content-Length"] = #head

function init(arguments)
  different = arguments[1] == "different"
  math.randomseed(os.time())
  sent = math.random(0, 2 ^ 30) * 2 ^ 15
  wrk.body = head .. "00000000" .. rest
end

function request()
  if not different then
    return wrk.format()
  end
  sent = sent + 1
  return wrk.format(nil, nil, nil, head .. number_in_bytes(sent) .. rest)
end

function number_in_bytes(number)
  local bytes = {}
  for i = 1, 8 do
    bytes[i] = string.char(48 + number % 64)
    number = math.floor(number / 64)
  end
  return table.concat(bytes)
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{"requests": %d, "failed": %d, "seconds": %.6f, "p99_microseconds": %.0f}\n',
    summary.requests, failed, summary.duration / 1e6, latency:percentile(99)
  ))
end

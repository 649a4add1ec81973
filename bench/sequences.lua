-- Sequences of 20 requests, one behind the other on each connection: wants as many threads as connections, because only
-- then does each connection have its own state. Prints a summary as one JSON object.

local length = 20
local threads = 0
local template = '{"inputs":[{"name":"INPUT","shape":[1,1],"datatype":"FP32","parameters":{"binary_data_size":4}}],' ..
  '"parameters":{"binary_data_output":true,"sequence_id":%d,"sequence_start":%s,"sequence_end":%s}}'
local value = "\0\0\128\63"

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

function init(arguments)
  run = tonumber(arguments[1])
  sequences, sent, called = 0, 0, 0
end

function request()
  called = called + 1
  if sent == 0 then
    sequences = sequences + 1
  end
  sent = sent + 1
  local id = (run * 1000 + number) * 100000 + sequences
  local head = string.format(template, id, tostring(sent == 1), tostring(sent == length))
  if sent == length or (number == 1 and called == 1) then -- the first one is made for wrk's own look at it, and not sent
    sent = 0
  end
  wrk.headers["Inference-Header-Content-Length"] = #head
  return wrk.format(nil, nil, nil, head .. value)
end

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '{"requests": %d, "failed": %d, "seconds": %.6f, "p99_microseconds": %.0f}\n',
    summary.requests, failed, summary.duration / 1e6, latency:percentile(99)
  ))
end

"""One connection over a transport and a clock of the test's own."""

import asyncio
import json
from functools import partial
from heapq import heappop, heappush
from types import SimpleNamespace

import numpy as np
import pytest
from uvicorn.server import ServerState

from naiad_http.protocol import HttpProtocol


class FakeTransport(asyncio.Transport):
    """Takes everything; `unsent` pretends that the client has not read so many bytes, `secure` that it is TLS."""

    def __init__(self, secure):
        super().__init__({"sslcontext": "a context"} if secure else {})
        self.written = b""
        self.vectors = []
        self.unsent = 0
        self.socket = None
        self.closed = self.aborted = self.eof = self.reading_paused = False

    def get_extra_info(self, name, default=None):
        return self.socket if name == "socket" else super().get_extra_info(name, default)

    def write(self, data):
        assert not self.eof
        self.written += data

    def writelines(self, list_of_data):
        self.vectors.append(list(list_of_data))
        self.written += b"".join(self.vectors[-1])

    def get_write_buffer_size(self):
        return self.unsent

    def set_write_buffer_limits(self, high=None, low=None):
        self.most_unsent = high

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.eof = True

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.closed or self.aborted

    def pause_reading(self):
        self.reading_paused = True

    def resume_reading(self):
        self.reading_paused = False


class FakeLoop:
    """A loop with a clock that a test moves."""

    def __init__(self):
        self.now = 1000.0
        self._count = 0
        self._timers = []

    def time(self):
        return self.now

    def call_soon(self, callback, *args):
        self.call_later(0, callback, *args)

    def call_later(self, delay, callback, *args):
        timer = SimpleNamespace(cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        self._count += 1
        heappush(self._timers, (self.now + delay, self._count, timer, partial(callback, *args)))
        return timer

    def turn(self):
        """Run what is due now, and nothing that is scheduled meanwhile."""
        due = [heappop(self._timers) for _ in range(sum(when <= self.now for when, *_ in self._timers))]
        for _, _, timer, callback in due:
            if not timer.cancelled:
                callback()

    def move(self, seconds):
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now, _, timer, callback = heappop(self._timers)
            if not timer.cancelled:
                callback()
        self.now = end


class FakeThreads:
    """Runs work at once; with `waits`, when a test runs the job."""

    def __init__(self):
        self.jobs = []
        self.waits = False

    def submit(self, work, on_done, loop):
        self.jobs.append(FakeJob(work, on_done))
        if not self.waits:
            self.jobs[-1].run()
        return self.jobs[-1]


class FakeJob:
    """Work on a thread; `run` does it and reports."""

    def __init__(self, work, on_done):
        self.cancelled = False
        self._work = work
        self._on_done = on_done

    def cancel(self):
        self.cancelled = True

    def fail(self, error):
        self.cancelled = True
        self._on_done(error)

    def run(self):
        if not self.cancelled:
            try:
                result = self._work()
            except BaseException as error:  # noqa: BLE001 - as the real one does
                result = error
            self.cancelled = True
            self._on_done(result)


class Connection:
    """A protocol on its fake transport and loop."""

    def __init__(self, context, secure=False, loop=None, state=None):
        self.context = context
        self.state = state or ServerState()
        self.loop = loop or FakeLoop()
        self.transport = FakeTransport(secure)
        self.threads = context.inference.threads = FakeThreads()
        self.protocol = HttpProtocol(context, None, self.state, {}, self.loop)
        self.protocol.connection_made(self.transport)

    def send(self, content, step=None):
        offset = 0
        while offset < len(content) and not self.transport.closed:
            buffer = self.protocol.get_buffer(-1)
            count = min(len(buffer), len(content) - offset, step or len(content))
            buffer[:count] = content[offset : offset + count]
            offset += count
            self.protocol.buffer_updated(count)

    def answers(self):
        """The status, headers and body of every answer that was written; `chunks` are those of a chunked body."""
        rest, result = self.transport.written, []
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines)
            chunks, rest = read_chunks(rest) if "transfer-encoding" in headers else (None, rest)
            length = int(headers.get("content-length", 0))
            body = rest[:length] if chunks is None else b"".join(chunk or b"" for chunk in chunks)
            result.append(SimpleNamespace(status=int(first.split()[1]), headers=headers, body=body, chunks=chunks))
            rest = rest[length:]
        return result


def read_chunks(content):
    """The chunks of a chunked body and what lies behind it; a body that has no end yet ends with None."""
    chunks = []
    while content:
        size, _, content = content.partition(b"\r\n")
        length = int(size, 16)
        assert content[length : length + 2] == b"\r\n"
        if length == 0:
            return chunks, content[2:]
        chunks.append(content[:length])
        content = content[length + 2 :]
    return [*chunks, None], b""


@pytest.fixture
def connection(make_context):
    return Connection(make_context())


@pytest.fixture
def connect(make_context):
    """Make a connection, over TLS where `secure`, to a site over the fake server with the site's options."""

    def connect(secure=False, **options):
        return Connection(make_context(**options), secure)

    return connect


@pytest.fixture
def streaming(connection, fake_server, generate):
    """A connection with a stream in flight."""
    connection.send(generate({"id": "7"}))
    connection.call = fake_server.calls[0]
    return connection


@pytest.fixture
def infer():
    """Make the bytes of an infer request with one binary INT8 tensor."""
    return infer_request


@pytest.fixture
def generate():
    """Make the bytes of a generate request, one that streams unless another action is given."""
    return generate_request


def infer_request(values=(1, 2), request_id="", *headers, version="HTTP/1.1"):
    """The bytes of an infer request with one binary INT8 tensor."""
    content = np.array(values, np.int8).tobytes()
    tensor = {
        "name": "X",
        "datatype": "INT8",
        "shape": [len(values)],
        "parameters": {"binary_data_size": len(content)},
    }
    front = json.dumps({"id": request_id, "inputs": [tensor]}).encode()
    lines = [
        f"POST /v2/models/m/infer {version}",
        "Host: h",
        f"Inference-Header-Content-Length: {len(front)}",
        f"Content-Length: {len(front) + len(content)}",
        *headers,
    ]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + front + content


def generate_request(document=None, *headers, action="generate_stream", version="HTTP/1.1"):
    """The bytes of a generate request."""
    body = json.dumps(document or {}).encode()
    lines = [f"POST /v2/models/m/{action} {version}", "Host: h", f"Content-Length: {len(body)}", *headers]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body

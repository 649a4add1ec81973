"""Our own transport on a socket, and a client that writes what it likes: frames by hand, or those of the library h2."""

import asyncio
from contextlib import asynccontextmanager

import h2.config
import h2.connection
import h2.events
import pytest
import uvloop

from naiad.options import Settings
from naiad_grpc.http2.header_blocks import encode_fields
from naiad_grpc.options import OPTIONS
from naiad_grpc.server.listener import Listener
from naiad_grpc.service.operations import StreamOperation
from naiad_kit.frontends.byte_budget import ByteBudget

from ..http2.conftest import END, END_HEADERS, FIELDS, GOAWAY, HEADERS, PREFACE, SETTINGS, frame, frames_in
from ..transport.conftest import Calls as SharedCalls


class Calls(SharedCalls):
    """The RPCs of all transports, and a stream that takes nothing until it may, and one that answers a lot."""

    def operations(self):
        further = (self.idle, self.flood)
        streams = [StreamOperation(f"/t/{each.__name__}", "inference", each) for each in further]
        return [*super().operations(), *streams]

    async def idle(self, messages, _context):
        await self.opened.wait()
        async for _ in messages:
            yield b""

    async def flood(self, _messages, _context):
        for number in range(50):
            self.noted.append(number)
            yield bytes(10_000)


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine on a loop of each kind."""

    def run(main):
        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(asyncio.wait_for(main, 60))

    return run


@asynccontextmanager
async def listening(calls=None, **options):
    """A listener with these options, on a port of the loopback interface."""
    calls = calls or Calls()
    chosen = {"grpc-port": 0, "grpc-address": "127.0.0.1", **options}
    listener = Listener(calls.operations(), Settings(OPTIONS, chosen), ByteBudget(1 << 30))
    listener.target = await listener.start()
    try:
        yield listener
    finally:
        calls.opened.set()
        await listener.stop(0)


@asynccontextmanager
async def connected(listener, **more):
    """A plain connection: reader and writer."""
    host, port = listener.target.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port), **more)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def all_frames(reader):
    """The frames until the server closes the connection."""
    return frames_in(await reader.read())


async def frames_until(reader, done):
    """The frames until one for which `done` is true, or the end of the connection."""
    received = []
    while True:
        try:
            head = await reader.readexactly(9)
        except (asyncio.IncompleteReadError, ConnectionError):
            return received
        received += frames_in(head + await reader.readexactly(int.from_bytes(head[:3], "big")))
        if done(*received[-1]):
            return received


def code_of_goaway(frames):
    """(code, reason) of the last GOAWAY."""
    payload = [payload for kind, _, _, payload in frames if kind == GOAWAY][-1]
    return int.from_bytes(payload[4:8], "big"), payload[8:]


GREETING = PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0)


def fields_for(path, *further):
    changed = [(name, path.encode() if name == b":path" else value) for name, value in FIELDS]
    return [*changed, *further]


def message(content, flag=0):
    return bytes((flag,)) + len(content).to_bytes(4, "big") + content


class Transport(asyncio.Transport):
    """Keeps what is written, one entry for each call."""

    def __init__(self):
        super().__init__()
        self.written = []

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False

    def write(self, data):
        self.written.append(bytes(data))

    def writelines(self, list_of_data):
        self.written.append(b"".join(list_of_data))

    def can_write_eof(self):
        return True

    def write_eof(self):
        pass

    def abort(self):
        pass


class Client:
    """The library h2 as a client on a socket, call by call. `ended` has the streams that have ended."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.content = {}
        self.head = {}
        self.trailers = {}
        self.resets = {}
        self.ended = set()
        self.closed = None

    def begin(self, path, content=None, *further, end=True):
        """Begin a call, with a message unless that is None; its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, fields_for(path, *further))
        if content is not None:
            self.h2.send_data(stream, content, end_stream=end)
        elif end:
            self.h2.end_stream(stream)
        self.flush()
        return stream

    def flush(self):
        self._writer.write(self.h2.data_to_send())

    async def until(self, done):
        """Read until `done()`; raises EOFError where the server closes first."""
        while not done():
            received = await self._reader.read(65536)
            if not received:
                raise EOFError(self.closed)
            for event in self.h2.receive_data(received):
                self._note(event)
            self.flush()

    async def status(self, stream):
        """The status and the message of a call, once it has ended."""
        await self.until(lambda: stream in self.trailers or stream in self.resets)
        trailers = self.trailers.get(stream, {})
        return trailers.get(b"grpc-status"), trailers.get(b"grpc-message", b"")

    def _note(self, event):
        stream = getattr(event, "stream_id", 0)
        if isinstance(event, h2.events.ResponseReceived):
            self.head[stream] = dict(event.headers)
            if b"grpc-status" in self.head[stream]:
                self.trailers[stream] = self.head[stream]
        elif isinstance(event, h2.events.TrailersReceived):
            self.trailers[stream] = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            self.content[stream] = self.content.get(stream, b"") + event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamReset):
            self.resets[stream] = event.error_code
        elif isinstance(event, h2.events.StreamEnded):
            self.ended.add(stream)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.closed = event.error_code


@asynccontextmanager
async def client_of(listener, **more):
    """A client of the library h2."""
    async with connected(listener, **more) as (reader, writer):
        yield Client(reader, writer)


def begin(stream, path="/t/echo", flags=END_HEADERS, *further):
    """The frame that begins a call."""
    return frame(HEADERS, flags, stream, encode_fields(fields_for(path, *further)))


WHOLE = END_HEADERS | END

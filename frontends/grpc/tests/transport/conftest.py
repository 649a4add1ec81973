"""A listener of either transport over RPCs of the tests' own, and clients of grpcio for it."""

import asyncio

import grpc
import pytest
import uvloop

from naiad.errors import InvalidArgumentError
from naiad.options import Settings
from naiad_grpc.grpcio import listener as grpcio
from naiad_grpc.http2.header_blocks import encode_fields
from naiad_grpc.options import OPTIONS
from naiad_grpc.server import listener as naiad
from naiad_grpc.service.operations import StreamOperation, UnaryOperation
from naiad_kit.frontends.byte_budget import ByteBudget

from ..http2.conftest import END_HEADERS, FIELDS, HEADERS, frame

LARGE = 32_000_000


class Calls:
    """RPCs that give messages back, fail, or wait; what became of them is noted."""

    def __init__(self):
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.ended = asyncio.Event()
        self.noted = []

    def operations(self):
        unary = (self.echo, self.fail, self.refuse, self.wait, self.remaining, self.context, self.large)
        return [
            *(UnaryOperation(f"/t/{each.__name__}", "inference", each) for each in unary),
            UnaryOperation("/t/other", "statistics", self.echo),
            UnaryOperation("/t/alive", "health", self.echo),
            StreamOperation("/t/stream", "inference", self.stream),
            StreamOperation("/t/late", "inference", self.late),
        ]

    async def echo(self, message, _context):
        return message

    async def fail(self, message, _context):
        raise ValueError("a secret of ours")

    async def refuse(self, message, _context):
        raise InvalidArgumentError(message.decode())

    async def remaining(self, _message, context):
        return str(context.time_remaining()).encode()

    async def context(self, _message, context):
        return type(context).__name__.encode()

    async def large(self, _message, _context):
        """More than the system takes off a connection that is not read."""
        self.entered.set()
        return bytes(LARGE)

    async def wait(self, message, _context):
        self.entered.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.noted.append("cancelled")
            self.ended.set()
            raise
        return message

    async def stream(self, messages, _context):
        """Every message as it comes, and how many there were."""
        count = 0
        try:
            async for message in messages:
                if message == b"fail":
                    raise ValueError("a secret of ours")
                yield message
                count += 1
            yield str(count).encode()
        finally:
            self.noted.append("closed")
            self.ended.set()

    async def late(self, messages, context):
        """Nothing until it may; then the messages that came."""
        results = [message async for message in messages]
        self.entered.set()
        await self.opened.wait()
        for message in results:
            yield message


LISTENERS = {"naiad": naiad.Listener, "grpcio": grpcio.Listener}


class Transport:
    """The transport under test."""

    name = "naiad"


@pytest.fixture(params=["naiad asyncio", "naiad uvloop", "grpcio uvloop"])
def run(request, monkeypatch):
    """Run a coroutine with our transport on a loop of each kind, and with grpcio on that of `naiad serve`."""
    transport, kind = request.param.split()
    monkeypatch.setattr(Transport, "name", transport)

    def run(main):
        factory = uvloop.new_event_loop if kind == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(asyncio.wait_for(main, 60))

    return run


class Served:
    """A listener that listens, and channels to it."""

    def __init__(self, calls, **options):
        self.calls = calls
        self.budget = ByteBudget(1 << 30)
        settings = {"grpc-port": 0, "grpc-address": "127.0.0.1", **options}
        self.listener = LISTENERS[Transport.name](calls.operations(), Settings(OPTIONS, settings), self.budget)
        self.target = ""

    async def __aenter__(self):
        self.target = await self.listener.start()
        return self

    async def __aexit__(self, *_):
        self.calls.opened.set()
        await self.listener.stop(0)

    def channel(self, credentials=None, **more):
        if credentials is None:
            return grpc.aio.insecure_channel(self.target, **more)
        return grpc.aio.secure_channel(self.target, credentials, **more)

    async def ask(self, name, message=b"", **more):
        """The answer to one unary call on a channel of its own, or its status and details."""
        async with self.channel() as channel:
            return await answer(channel, name, message, **more)


def head(stream, path):
    """The frame that begins a call, of a client that writes frames by hand."""
    fields = [(name, path.encode() if name == b":path" else value) for name, value in FIELDS]
    return frame(HEADERS, END_HEADERS, stream, encode_fields(fields))


async def answer(channel, name, message=b"", **more):
    """The answer to one unary call, or its status and details."""
    try:
        return await channel.unary_unary(f"/t/{name}")(message, **more)
    except grpc.aio.AioRpcError as error:
        return error.code().name, error.details()

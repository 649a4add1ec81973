"""Where the bytes of a client are received: the rest of a long frame in the memory of its message."""

import asyncio
import random

import pytest

from naiad_grpc.server import protocol
from naiad_grpc.service.operations import StreamOperation, UnaryOperation

from ..http2.conftest import DATA, END, END_HEADERS, PADDED, RST, WINDOW, frame, number
from .conftest import GREETING, Calls, Transport, begin, connected, listening, message

CONTENT = random.Random(1).randbytes(300_000)
LONG = frame(DATA, END, 1, message(CONTENT))


class Received(Calls):
    """Calls that note their messages, and the memory that they were put together in."""

    def __init__(self):
        super().__init__()
        self.memories = []

    def operations(self):
        return [
            *super().operations(),
            UnaryOperation("/t/noted", "inference", self.echo, self.begin, memory=self.memory),
            StreamOperation("/t/stream", "inference", self.stream, memory=self.memory),
        ]

    def memory(self, _front, size):
        self.memories.append(memoryview(bytearray(size)))
        return self.memories[-1]

    def begin(self, content, _context, answered, _decoded):
        self.noted.append(content)
        answered([b"%d" % len(content)])
        return lambda: None

    async def stream(self, messages, _context):
        async for each in messages:
            self.noted.append(each)
            yield b""


def deliver(connection, data, most=1 << 20):
    """Write bytes where the connection wants them, as an event loop does; how many went into which memory."""
    went = []
    while data:
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data), most)
        buffer[:count] = data[:count]
        went.append((count, buffer.obj))
        connection.buffer_updated(count)
        data = data[count:]
    return went


@pytest.fixture
def ask(run):
    """Have a test talk to a connection of a listener."""

    def ask(test):
        async def main():
            calls = Received()
            async with listening(calls) as listener:
                connection = protocol.GrpcProtocol(listener._context)
                connection.connection_made(Transport())
                deliver(connection, GREETING + frame(WINDOW, 0, 0, number(1 << 20)))
                result = test(connection, calls)
                await asyncio.sleep(0)
                connection.connection_lost(None)
                return result, listener._context.budget.reserved

        result, reserved = run(main())
        assert reserved == 0
        return result

    return ask


@pytest.mark.parametrize("most", [1 << 20, 50_000, 7_001])
def test_the_rest_of_a_long_frame_is_received_in_the_memory_of_its_message(ask, most):
    def test(connection, calls):
        deliver(connection, begin(1, "/t/noted", END_HEADERS) + LONG[:1000])
        went = deliver(connection, LONG[1000:] + begin(3, "/t/noted", END_HEADERS), most)
        (whole,) = calls.memories
        placed = sum(count for count, memory in went if memory is whole.obj)
        return calls.noted, calls.noted[0] is whole, placed, went[-1][1] is whole.obj

    noted, is_memory, placed, followed = ask(test)

    assert noted == [CONTENT]
    assert is_memory
    assert placed == len(LONG) - 1000
    assert not followed


def test_what_comes_before_the_next_long_frame_is_received_in_a_short_buffer(ask):
    def test(connection, calls):
        before = len(connection.get_buffer(-1))
        deliver(connection, begin(1, "/t/noted", END_HEADERS) + LONG[:1000])
        deliver(connection, LONG[1000:])
        went = deliver(connection, begin(3, "/t/noted", END_HEADERS) + frame(DATA, END, 3, message(CONTENT)))
        return before, went[0][0], calls.noted

    before, first, noted = ask(test)

    assert (before, first) == (256 << 10, 16 << 10)
    assert noted == [CONTENT, CONTENT]


def test_a_frame_with_padding_is_not_received_in_place(ask):
    padded = frame(DATA, END | PADDED, 1, b"\x09" + message(CONTENT) + bytes(9))

    def test(connection, calls):
        deliver(connection, begin(1, "/t/noted", END_HEADERS) + padded[:1000])
        went = deliver(connection, padded[1000:], 100_000)
        return calls.noted, [memory is calls.memories[0].obj for _, memory in went]

    noted, placed = ask(test)

    assert noted == [CONTENT]
    assert not any(placed)


def test_messages_that_share_a_frame_are_kept_apart(run):
    shared = frame(DATA, END, 1, message(CONTENT) + message(b"short") + message(CONTENT[:70_000]))

    async def main():
        calls = Received()
        async with listening(calls) as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + begin(1, "/t/stream", END_HEADERS) + shared[:1000])
            await asyncio.sleep(0)
            writer.write(shared[1000:])
            while len(calls.noted) < 3:
                assert await reader.read(1000)
        return calls.noted

    assert run(main()) == [CONTENT, b"short", CONTENT[:70_000]]


def test_memory_that_was_offered_and_not_used_is_dropped_when_its_call_ends(ask):
    def test(connection, calls):
        deliver(connection, begin(1, "/t/noted", END_HEADERS) + LONG[:1000])
        offered = connection.get_buffer(-1).obj is calls.memories[0].obj  # and then the socket has nothing yet
        connection.calls[1].fail(protocol.RpcError(protocol.Code.ABORTED, "no"))
        went = deliver(connection, LONG[1000:] + begin(3, "/t/noted", END_HEADERS) + frame(DATA, END, 3, message(b"a")))
        return offered, [memory is calls.memories[0].obj for _, memory in went], calls.noted

    offered, placed, noted = ask(test)

    assert offered
    assert not any(placed)
    assert noted == [b"a"]


def test_a_call_that_is_reset_by_the_client_after_its_frame_has_no_effect(ask):
    def test(connection, calls):
        deliver(connection, begin(1, "/t/noted", END_HEADERS) + frame(DATA, 0, 1, message(CONTENT)[:200_000]))
        deliver(connection, frame(RST, 0, 1, number(8)) + begin(3, "/t/noted", END_HEADERS))
        deliver(connection, frame(DATA, END, 3, message(b"a")))
        return calls.noted

    assert ask(test) == [b"a"]

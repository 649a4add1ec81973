"""Connections that end while their client still reads: it gets all that was sent, and cannot stay for ever."""

import asyncio
import contextlib
import errno
from dataclasses import replace

import pytest

from naiad_grpc.http2.frames import ErrorCode
from naiad_grpc.server import protocol
from naiad_grpc.service.operations import UnaryOperation

from ..http2.conftest import DATA, END, GOAWAY, HEADERS, PREFACE, SETTINGS, WINDOW, frame, frames_in, number, setting
from .conftest import Calls, begin, connected, listening, message

WIDE = setting(4, 2**31 - 1)
GREETING = PREFACE + frame(SETTINGS, 0, 0, WIDE) + frame(SETTINGS, 1, 0) + frame(WINDOW, 0, 0, number(2**30))
NARROW_GREETING = PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0)
LAST_CALL = begin(1, "/t/large") + frame(DATA, END, 1, message(b"")) + frame(GOAWAY, 0, 0, bytes(8))
LARGE = 32_000_000


class LargeAnswers(Calls):
    """The RPCs of all tests, and one whose answer is more than the system takes off a connection that is not read."""

    def operations(self):
        return [*super().operations(), UnaryOperation("/t/large", "inference", self.large)]

    async def large(self, _message, _context):
        self.entered.set()
        return bytes(LARGE)


@pytest.fixture
def brief(monkeypatch):
    """A client may send for 10 ms after the end of its connection."""
    monkeypatch.setattr(protocol, "_LINGER_SECONDS", 0.01)


def test_a_client_that_reads_slowly_gets_the_whole_last_answer(run, brief):
    calls = LargeAnswers()

    async def main():
        async with listening(calls) as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + LAST_CALL)
            await calls.entered.wait()
            await asyncio.sleep(0.1)  # ten times what a client may send after the end
            return frames_in(await reader.read())

    frames = run(main())

    assert sum(len(payload) for kind, _, _, payload in frames if kind == DATA) == LARGE + 5
    assert [(kind, flags & END) for kind, flags, *_ in frames][-1] == (HEADERS, END)


@pytest.mark.parametrize(
    "greeting",
    [pytest.param(GREETING, id="waits in the transport"), pytest.param(NARROW_GREETING, id="waits for a window")],
)
def test_a_server_that_stops_sends_a_slow_client_its_whole_answer(run, brief, greeting):
    calls = LargeAnswers()

    async def main():
        async with listening(calls) as listener, connected(listener) as (reader, writer):
            writer.write(greeting + begin(1, "/t/large") + frame(DATA, END, 1, message(b"")))
            await calls.entered.wait()
            stopping = asyncio.ensure_future(listener.stop(30))
            await asyncio.sleep(0.1)  # ten times what a client may send after the end
            writer.write(frame(WINDOW, 0, 0, number(2**30)) + frame(WINDOW, 0, 1, number(2**30)))
            frames = frames_in(await reader.read())
            await stopping
            return frames

    frames = run(main())

    assert sum(len(payload) for kind, _, _, payload in frames if kind == DATA) == LARGE + 5


def test_a_server_that_stops_waits_no_longer_than_its_grace_for_a_client_that_does_not_read(run, brief):
    calls = LargeAnswers()

    async def main():
        async with listening(calls) as listener, connected(listener) as (_, writer):
            writer.write(GREETING + begin(1, "/t/large") + frame(DATA, END, 1, message(b"")))
            await calls.entered.wait()
            await listener.stop(0.2)
            await listener._context.empty.wait()
            return listener.calls_in_flight, listener._context.budget.reserved

    assert run(main()) == (0, 0)


def test_a_client_that_does_not_read_the_last_answer_is_disconnected(run, brief):
    calls = LargeAnswers()

    async def main():
        async with listening(calls) as listener:
            limits = listener._context.limits
            listener._context.limits = replace(limits, timeouts=replace(limits.timeouts, stall=0.05))
            async with connected(listener) as (_, writer):
                writer.write(GREETING + LAST_CALL)
                await calls.entered.wait()
                await listener._context.empty.wait()

    run(main())


def test_a_connection_whose_first_bytes_end_it_is_closed(run, brief):
    async def main():
        async with listening() as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + frame(DATA, 0, 1, b"x"))
            frames = frames_in(await reader.read())
            await listener._context.empty.wait()
            return frames

    assert run(main())[-1][3][4:8] == number(ErrorCode.PROTOCOL_ERROR)


def test_the_end_of_a_connection_that_the_client_has_reset_already_is_no_error(monkeypatch, caplog):
    def write_eof(_transport):
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    async def main():
        monkeypatch.setattr(asyncio.selector_events._SelectorSocketTransport, "write_eof", write_eof)
        async with listening() as listener, connected(listener) as (reader, writer):
            call = begin(1, "/t/echo") + frame(DATA, END, 1, message(b""))
            writer.write(GREETING + call + frame(GOAWAY, 0, 0, bytes(8)))
            with contextlib.suppress(ConnectionResetError):
                await reader.read()

    asyncio.run(asyncio.wait_for(main(), 60))

    assert caplog.records == []

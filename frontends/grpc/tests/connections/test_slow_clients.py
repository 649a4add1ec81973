"""Clients that send slowly, read slowly or not at all: each call or connection ends in bounded time and memory."""

import asyncio
from dataclasses import replace

import pytest

from naiad_grpc.http2.frames import ErrorCode
from naiad_grpc.server import calls as server_calls
from naiad_grpc.server import protocol

from ..http2.conftest import DATA, END_HEADERS, GOAWAY, HEADERS, RST, WINDOW, frame, number, setting
from ..http2.conftest import SETTINGS as SETTINGS_FRAME
from .conftest import (
    GREETING,
    WHOLE,
    Calls,
    begin,
    client_of,
    connected,
    frames_until,
    listening,
    message,
)

E = ErrorCode


@pytest.fixture
def hurried(monkeypatch):
    """Requests may take 50 ms, and the server looks at them every 10 ms."""
    monkeypatch.setattr(server_calls, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(protocol, "_LONGEST_TIMER", 0.01)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/t/echo", None),
        ("/t/echo", b"\0\0"),
        ("/t/echo", message(b"abc")[:-1]),
        ("/t/echo", message(b"abc")),
        ("/t/stream", b"\0\0"),
        ("/t/stream", message(b"abc")[:-1]),
        ("/t/stream", message(b"first") + message(b"abc")[:-1]),
    ],
)
def test_a_request_that_takes_too_long_is_cancelled(run, hurried, path, content):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            stream = client.begin(path, content, end=False)
            status = await client.status(stream)
            await client.until(lambda: stream in client.resets)
            following = client.begin("/t/echo", message(b"next"))
            return status, client.resets[stream], await client.status(following), listener.calls_in_flight

    status, reset, following, in_flight = run(main())

    assert status == (b"1", b"a message took too long to arrive")
    assert (reset, following, in_flight) == (E.NO_ERROR, (b"0", b""), 0)


@pytest.mark.parametrize("content", [None, message(b"a")])
def test_a_stream_may_be_silent_between_messages(run, hurried, content):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            stream = client.begin("/t/stream", content, end=False)
            await _some_looks(client)
            client.h2.end_stream(stream)
            client.flush()
            return await client.status(stream)

    assert run(main()) == (b"0", b"")


@pytest.mark.parametrize(
    ("rest", "expected"),
    [(message(b"abc")[3:], (b"0", b"")), (b"", (b"1", b"a message took too long to arrive"))],
    ids=["the rest comes", "the rest does not come"],
)
def test_a_prefix_that_has_no_window_is_not_late_until_the_stream_goes_on(run, hurried, rest, expected):
    calls = Calls()

    async def main():
        async with listening(calls) as listener, client_of(listener) as client:
            stream = client.begin("/t/idle", message(b"first") + message(b"abc")[:3], end=False)
            await _some_looks(client)
            waited = stream not in client.trailers
            calls.opened.set()
            if rest:
                client.h2.send_data(stream, rest, end_stream=True)
                client.flush()
            return waited, await client.status(stream)

    assert run(main()) == (True, expected)


def test_a_message_that_arrives_fast_enough_may_take_long(run, hurried, monkeypatch):
    monkeypatch.setattr(server_calls, "SLOWEST_BYTES_PER_SECOND", 10)

    async def main():
        async with listening() as listener, client_of(listener) as client:
            content = message(bytes(100))
            stream = client.begin("/t/echo", content[:50], end=False)
            await asyncio.sleep(0.15)
            client.h2.send_data(stream, content[50:], end_stream=True)
            client.flush()
            return await client.status(stream)

    assert run(main()) == (b"0", b"")


def test_a_header_block_that_does_not_end_ends_the_connection(run, monkeypatch):
    monkeypatch.setattr(protocol, "_LONGEST_TIMER", 0.01)

    async def main():
        async with listening() as listener:
            limits = listener._context.limits
            listener._context.limits = replace(limits, timeouts=replace(limits.timeouts, header_block=0.05))
            async with connected(listener) as (reader, writer):
                writer.write(GREETING + begin(1, "/t/echo", 0))
                return await frames_until(reader, lambda kind, *_: kind == GOAWAY)

    assert run(main())[-1][3][4:] == number(E.ENHANCE_YOUR_CALM) + b"header_block_timeout"


@pytest.mark.parametrize("path", ["/t/echo", "/t/stream"])
def test_an_answer_that_the_client_gives_no_window_for_is_reset(run, monkeypatch, path):
    monkeypatch.setattr(protocol, "_LONGEST_TIMER", 0.01)

    async def main():
        async with listening() as listener:
            limits = listener._context.limits
            listener._context.limits = replace(limits, timeouts=replace(limits.timeouts, stall=0.05))
            async with connected(listener) as (reader, writer):
                content = message(bytes(100))
                writer.write(GREETING + frame(SETTINGS_FRAME, 0, 0, setting(4, 0)) + begin(1, path))
                writer.write(frame(DATA, 1, 1, content))
                received = await frames_until(reader, lambda kind, *_: kind == RST)
                return received[-1], listener.calls_in_flight, listener._context.budget.reserved

    (_, _, stream, payload), in_flight, reserved = run(main())

    assert (stream, payload, in_flight, reserved) == (1, number(E.CANCEL), 0, 0)


def test_answers_that_wait_for_a_window_count_as_calls_in_flight_and_to_the_budget(run):
    async def main():
        async with listening(**{"grpc-max-calls": 3}) as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + frame(SETTINGS_FRAME, 0, 0, setting(4, 0)))
            for stream in (1, 3, 5, 7):
                writer.write(begin(stream) + frame(DATA, 1, stream, message(bytes(1000))))
            await frames_until(reader, lambda kind, _, stream, __: kind == HEADERS and stream == 7)  # it is refused
            waiting = listener.calls_in_flight, listener._context.budget.reserved
            writer.write(frame(SETTINGS_FRAME, 0, 0, setting(4, 65535)))
            frames = await frames_until(
                reader, lambda kind, flags, stream, _: (kind, flags & 1, stream) == (HEADERS, 1, 5)
            )
            sent = sum(len(payload) for kind, _, _, payload in frames if kind == DATA)
            return waiting, sent, listener.calls_in_flight, listener._context.budget.reserved

    waiting, sent, in_flight, reserved = run(main())

    assert waiting == (3, sent) == (3, 3 * 1005)
    assert (in_flight, reserved) == (0, 0)


class FullTransport(asyncio.Transport):
    """A transport whose client reads nothing: it keeps count of what is written."""

    def __init__(self):
        super().__init__()
        self.size = 0
        self.aborted = False

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        return self.size

    def write(self, content):
        self.size += len(content)

    def writelines(self, contents):
        self.size += sum(map(len, contents))

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True


def test_a_client_that_reads_nothing_cannot_have_statuses_pile_up(run):
    async def main():
        async with listening() as listener:
            connection, full = protocol.GrpcProtocol(listener._context), FullTransport()
            connection.connection_made(full)
            connection.receive(GREETING)
            connection.pause_writing()
            for first in range(1, 100_000, 1000):
                dreams = (begin(stream, "/t/dream", WHOLE) for stream in range(first, first + 1000, 2))
                connection.receive(b"".join(dreams))
                if full.aborted:
                    break
            connection.connection_lost(None)
            return full.size, full.aborted, listener._context.budget.reserved

    size, aborted, reserved = run(main())

    assert (aborted, reserved) == (True, 0)
    assert size < 2 << 20


def test_a_client_that_reads_nothing_is_disconnected_when_it_stalls(run, monkeypatch):
    monkeypatch.setattr(protocol, "_LONGEST_TIMER", 0.01)

    async def main():
        async with listening() as listener:
            limits = listener._context.limits
            listener._context.limits = replace(limits, timeouts=replace(limits.timeouts, stall=0.1))
            async with connected(listener, limit=1000) as (_, writer):
                window = frame(WINDOW, 0, 0, number(1 << 30)) + frame(SETTINGS_FRAME, 0, 0, setting(4, 1 << 30))
                writer.write(GREETING + window)
                for stream in range(1, 17, 2):
                    writer.write(begin(stream) + b"".join(_large_message(stream)))
                await listener._context.empty.wait()
                return listener.calls_in_flight, listener._context.budget.reserved

    assert run(main()) == (0, 0)


async def _some_looks(client):
    """Wait until the server has looked for slow requests some times: it does so every 10 ms."""
    for _ in range(30):  # each takes the server a turn
        await client.status(client.begin("/t/alive", message(b"")))
        await asyncio.sleep(0.005)


def _parts(content):
    """The content of its DATA frames."""
    return [content[at : at + 16384] for at in range(0, len(content), 16384)]


def _large_message(stream):
    content = message(bytes(1_000_000))
    for at in range(0, len(content), 16384):
        part = content[at : at + 16384]
        yield frame(DATA, at + 16384 >= len(content), stream, part)


def test_a_paused_stream_is_granted_no_window(run):
    """Messages wait in the inbox while the function takes none; then the client gets no more window."""
    calls = Calls()

    async def main():
        async with listening(calls) as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + begin(1, "/t/idle", END_HEADERS))
            sent, grants = 0, 0
            window = 1 << 20
            while sent + 16389 <= window:
                writer.write(frame(DATA, 0, 1, message(bytes(16379))))
                sent += 16384
            writer.write(frame(6, 0, 0, b"12345678"))
            received = await frames_until(reader, lambda kind, flags, *_: kind == 6 and flags)
            grants = sum(stream == 1 for kind, _, stream, _ in received if kind == WINDOW)
            calls.opened.set()
            more = await frames_until(reader, lambda kind, _, stream, __: kind == WINDOW and stream == 1)
            return grants, more[-1][0]

    assert run(main()) == (0, WINDOW)


@pytest.mark.parametrize("end", ["taken", "reset", "lost"])
def test_what_waits_for_a_paused_stream_is_charged_until_it_is_taken(run, end):
    calls = Calls()

    async def main():
        async with listening(calls) as listener, connected(listener) as (reader, writer):
            budget = listener._context.budget
            writer.write(GREETING + begin(1, "/t/idle", END_HEADERS))
            for _ in range(40):
                writer.write(frame(DATA, 0, 1, message(bytes(16379))))
            writer.write(frame(6, 0, 0, b"12345678"))
            await frames_until(reader, lambda kind, flags, *_: kind == 6 and flags)
            waiting = budget.reserved
            if end == "taken":
                calls.opened.set()
                await frames_until(reader, lambda kind, _, stream, __: kind == WINDOW and stream == 1)
            elif end == "reset":
                writer.write(frame(RST, 0, 1, number(8)) + frame(6, 0, 0, b"87654321"))
                await frames_until(reader, lambda kind, flags, *_: kind == 6 and flags)
            else:
                writer.transport.abort()
                await listener._context.empty.wait()
            return waiting, budget.reserved

    waiting, after = run(main())

    assert 38 * 16384 <= waiting <= 40 * 16384
    assert after == 0


def test_messages_that_have_only_begun_reserve_what_they_hold(run):
    large, parts = 64 << 20, _parts(message(bytes(100_000)))

    async def main():
        async with listening() as listener, client_of(listener) as client:
            budget = listener._context.budget
            budget.limit = 2 * large
            for _ in range(32):
                client.begin("/t/echo", message(bytes(large))[:100], end=False)
            begun = client.begin("/t/echo", parts[0], end=False)
            await client.status(client.begin("/t/echo", message(b"x")))
            reserved = budget.reserved
            for part in parts[1:]:
                client.h2.send_data(begun, part, end_stream=part is parts[-1])
            client.flush()
            return reserved, await client.status(begun), budget.peak, budget.reserved

    reserved, status, peak, after = run(main())

    assert status == (b"0", b"")
    assert 0 < reserved <= 32 * (2 << 20) + 65536  # a large page each
    assert after < reserved
    assert after + 2 * 100_000 == peak  # the message and its answer


def test_a_stream_with_more_that_waits_than_the_budget_has_is_refused(run):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            listener._context.budget.limit = 100_000
            stream = client.begin("/t/idle", message(bytes(10_000)), end=False)
            for _ in range(40):
                if stream not in client.trailers:
                    client.h2.send_data(stream, message(bytes(10_000)))
                    client.flush()
                    following = client.begin("/t/echo", message(b"x"))
                    await client.status(following)
            return await client.status(stream), listener._context.budget.reserved

    (status, reason), reserved = run(main())

    assert (status, b"--max-bytes-in-flight" in reason, reserved) == (b"14", True, 0)


def test_a_function_waits_for_a_client_that_reads_slowly(run):
    calls = Calls()

    async def main():
        async with listening(calls) as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + begin(1, "/t/flood", WHOLE))
            received = await frames_until(reader, lambda kind, *_: kind == HEADERS)
            size = 0
            while size < 65535:
                received = await frames_until(reader, lambda kind, *_: kind == DATA)
                size += len(received[-1][3])
            before = len(calls.noted)
            writer.write(frame(WINDOW, 0, 0, number(1 << 20)) + frame(WINDOW, 0, 1, number(1 << 20)))
            await frames_until(reader, lambda kind, flags, *_: kind == HEADERS and flags & 1)
            return size, before, len(calls.noted)

    size, before, after = run(main())

    assert size == 65535
    assert before <= 8
    assert after == 50

"""How a listener ends: what is in flight is answered, what is new is refused, and nothing hangs."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest

from naiad_testing.loops import until

from ..http2.conftest import DATA, END, PREFACE, SETTINGS, WINDOW, frame, frames_in, number, setting
from .conftest import LARGE, Calls, Served, answer, head

REFUSED = ("UNAVAILABLE", "GRPC server is shutting down and has stopped accepting new requests.")


async def until_refused(channel):
    """The first answer of a call that is not answered well."""
    while (values := await answer(channel, "echo", b"x")) == b"x":
        pass
    return values


def test_what_is_in_flight_is_answered_and_what_is_new_is_refused(run):
    calls = Calls()

    async def main():
        async with Served(calls) as served, served.channel() as channel:
            waiting = asyncio.ensure_future(answer(channel, "wait", b"late"))
            await calls.entered.wait()
            stopping = asyncio.ensure_future(served.listener.stop(30))
            refused = await until_refused(channel)
            calls.opened.set()
            await stopping
            return await waiting, refused

    assert run(main()) == (b"late", REFUSED)


def test_an_answer_that_takes_long_to_send_arrives_whole(run):
    calls = Calls()

    async def main():
        unlimited = [("grpc.max_receive_message_length", -1)]
        async with Served(calls) as served, served.channel() as channel, served.channel(options=unlimited) as other:
            waiting = asyncio.ensure_future(answer(other, "wait", bytes(LARGE)))
            await calls.entered.wait()
            stopping = asyncio.ensure_future(served.listener.stop(30))
            await until_refused(channel)
            calls.opened.set()
            result = await waiting
            await stopping
            return len(result)

    assert run(main()) == LARGE


def test_a_call_that_takes_too_long_is_cut_off(run):
    calls = Calls()

    async def main():
        async with Served(calls) as served, served.channel() as channel:
            waiting = asyncio.ensure_future(answer(channel, "wait"))
            await calls.entered.wait()
            await served.listener.stop(0.05)
            return await waiting

    status, _ = run(main())

    assert status in ("CANCELLED", "UNAVAILABLE")
    assert calls.noted == ["cancelled"]


def test_a_stream_that_waits_for_its_client_does_not_hold_up_the_end(run):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            stream = channel.stream_stream("/t/stream")()
            await stream.write(b"a")
            first = await stream.read()
            started = asyncio.get_running_loop().time()
            await served.listener.stop(30)
            rest = await stream.read()
            return first, rest, (await stream.code()).name, await stream.details(), _since(started)

    first, rest, status, details, took = run(main())

    assert (first, rest) == (b"a", b"1")
    assert (status, details) == REFUSED
    assert took < 10


def test_a_stream_that_still_answers_may_do_so(run):
    calls = Calls()

    async def main():
        async with Served(calls) as served, served.channel() as channel:
            stream = channel.stream_stream("/t/late")()
            await stream.write(b"a")
            await stream.done_writing()
            await calls.entered.wait()
            stopping = asyncio.ensure_future(served.listener.stop(30))
            await until_refused(channel)
            calls.opened.set()
            read = [message async for message in stream]
            await stopping
            return read, await stream.code()

    assert run(main()) == ([b"a"], grpc.StatusCode.OK)


def test_idle_connections_do_not_hold_up_the_end(run):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            await answer(channel, "echo")
            started = asyncio.get_running_loop().time()
            await served.listener.stop(30)
            return _since(started)

    assert run(main()) < 10


HALF_A_MESSAGE = b"\0\0\0\0\x64" + bytes(50)
WIDE = frame(SETTINGS, 0, 0, setting(4, 2**31 - 1)) + frame(WINDOW, 0, 0, number(2**30))


@asynccontextmanager
async def silent_client(served, *frames):
    """A client that sends these frames and no more: it answers no PING, and acknowledges nothing."""
    reader, writer = await asyncio.open_connection(*served.target.rsplit(":", 1))
    try:
        writer.write(PREFACE + frame(SETTINGS, 0, 0) + b"".join(frames))
        yield reader
    finally:
        writer.transport.abort()


async def until_in_flight(served, count):
    await until(lambda: served.listener.calls_in_flight >= count)


@pytest.mark.parametrize("content", [b"", frame(DATA, 0, 1, HALF_A_MESSAGE)], ids=["nothing", "half a message"])
def test_a_stream_whose_client_keeps_silent_does_not_hold_up_the_end(run, content):
    async def main():
        async with (
            Served(Calls()) as served,
            silent_client(served, head(1, "/t/stream"), content),
        ):
            await until_in_flight(served, 1)
            started = asyncio.get_running_loop().time()
            await served.listener.stop(30)
            return _since(started)

    assert run(main()) < 10


def test_a_request_that_has_come_in_part_may_be_completed(run):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            reader, writer = await asyncio.open_connection(*served.target.rsplit(":", 1))
            writer.write(PREFACE + frame(SETTINGS, 0, 0) + head(1, "/t/echo") + frame(DATA, 0, 1, HALF_A_MESSAGE))
            await until_in_flight(served, 1)
            stopping = asyncio.ensure_future(served.listener.stop(30))
            await until_refused(channel)
            writer.write(frame(DATA, END, 1, bytes(50)))
            received = frames_in(await reader.read())
            await stopping
            writer.transport.abort()
            return b"".join(payload for kind, _, _, payload in received if kind == DATA)

    assert run(main()) == b"\0\0\0\0\x64" + bytes(100)


def test_a_client_that_reads_slowly_gets_its_whole_answer(run):
    calls = Calls()

    async def main():
        call = head(1, "/t/large"), frame(DATA, END, 1, bytes(5))
        async with Served(calls) as served, silent_client(served, WIDE, *call) as reader:
            await calls.entered.wait()
            stopping = asyncio.ensure_future(served.listener.stop(30))
            await asyncio.sleep(0.5)  # twice what grpcio may take for the last bytes
            received = frames_in(await reader.read())
            await stopping
            return sum(len(payload) for kind, _, _, payload in received if kind == DATA)

    assert run(main()) == LARGE + 5


def test_the_log_names_the_calls_that_are_cut_off(run, caplog):
    calls = Calls()

    async def main():
        async with Served(calls) as served, served.channel() as channel:
            waiting = asyncio.ensure_future(answer(channel, "wait"))
            await calls.entered.wait()
            parts = [head(1, "/t/echo"), head(3, "/t/echo"), frame(DATA, 0, 3, HALF_A_MESSAGE)]
            async with silent_client(served, *parts):
                await until_in_flight(served, 3)
                await served.listener.stop(0.25)
            await waiting

    run(main())

    cut_off = "3 calls that did not end within 0.25 s: 2 of /t/echo (request incomplete), 1 of /t/wait"
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"gRPC: the server stops, and cuts off {cut_off}"]


def _since(started):
    return asyncio.get_running_loop().time() - started

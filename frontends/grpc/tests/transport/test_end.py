"""How a listener ends: what is in flight is answered, what is new is refused, and nothing hangs."""

import asyncio

import grpc

from .conftest import Calls, Served, answer

REFUSED = ("UNAVAILABLE", "GRPC server is shutting down and has stopped accepting new requests.")


LARGE = 32_000_000
"""Bytes of an answer that no client gives a window for at once."""


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


def _since(started):
    return asyncio.get_running_loop().time() - started

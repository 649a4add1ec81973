"""Calls on grpc.aio: what comes back, what errors become, deadlines and leaving clients; on either event loop."""

import asyncio

import grpc
import pytest
import uvloop

from naiad_grpc.http2.connection import Connection

from ..connections.conftest import client_of, message
from .conftest import Calls, Served, answer


def test_a_call_is_answered_with_the_bytes_that_its_function_gave(run):
    async def main():
        async with Served(Calls()) as served:
            return await served.ask("echo", b"\x00\xff")

    assert run(main()) == b"\x00\xff"


def test_an_error_becomes_its_status_with_its_message(run):
    async def main():
        async with Served(Calls()) as served:
            return await served.ask("refuse", "no: ärger\nhere".encode())

    assert run(main()) == ("INVALID_ARGUMENT", "no: ärger\nhere")


def test_an_unexpected_error_is_reported_to_the_log_and_not_to_the_client(run, caplog):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            return await answer(channel, "fail"), await answer(channel, "echo", b"next")

    (status, details), following = run(main())

    assert (status, "secret" in details, following) == ("INTERNAL", False, b"next")
    assert "a secret of ours" in caplog.text
    assert [record.name for record in caplog.records] == ["naiad.grpc"]


def test_an_rpc_that_there_is_not_is_unimplemented(run):
    async def main():
        async with Served(Calls()) as served:
            return await served.ask("dream")

    assert run(main())[0] == "UNIMPLEMENTED"


def test_a_function_sees_how_much_time_its_caller_gives(run):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            return await answer(channel, "remaining", timeout=30), await answer(channel, "remaining")

    limited, unlimited = run(main())

    assert 0 < float(limited) < 31
    assert unlimited == b"None"


@pytest.mark.parametrize(
    ("metadata", "kind_name"),
    [((), b"plain"), ((("naiad-explain", "1"),), b"ExplainedContext"), ((("naiad-explain", "0"),), b"plain")],
)
def test_metadata_that_asks_for_explanations_reaches_the_function_by_its_context(run, metadata, kind_name):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            return await answer(channel, "context", metadata=metadata), await answer(channel, "remaining", timeout=9)

    kind, remaining = run(main())

    assert (kind if kind == b"ExplainedContext" else b"plain") == kind_name
    assert 0 < float(remaining) < 10


@pytest.mark.parametrize("how", ["deadline", "cancel", "disconnect"])
def test_a_caller_that_leaves_takes_its_call_back(run, how, caplog):
    calls = Calls()

    async def main():
        async with Served(calls) as served:
            channel = served.channel()
            call = channel.unary_unary("/t/wait")(b"", timeout=0.5 if how == "deadline" else 30)
            await calls.entered.wait()
            if how == "cancel":
                call.cancel()
            elif how == "disconnect":
                await channel.close()
            await calls.ended.wait()
            following = await served.ask("echo", b"next")
            await channel.close()
            return following

    following = run(main())

    assert (calls.noted, following) == (["cancelled"], b"next")
    assert caplog.records == []


@pytest.mark.parametrize("path", ["/t/wait", "/t/stream", "/t/late"])
def test_a_call_of_any_kind_that_is_late_ends_with_deadline_exceeded(run, path):
    async def main():
        async with Served(Calls()) as served, client_of(served) as client:
            late = client.begin(path, message(b"a"), (b"grpc-timeout", b"100m"), end=path == "/t/wait")
            return await client.status(late)

    assert run(main()) == (b"4", b"Deadline Exceeded")


def test_a_stream_carries_messages_both_ways_until_its_client_has_no_more(run):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            stream = channel.stream_stream("/t/stream")()
            read = []
            for message in (b"a", b"b"):
                await stream.write(message)
                read.append(await stream.read())
            await stream.done_writing()
            return read, await stream.read(), await stream.read(), await stream.code()

    assert run(main()) == ([b"a", b"b"], b"2", grpc.aio.EOF, grpc.StatusCode.OK)


def test_an_error_ends_a_stream_with_its_status(run, caplog):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            stream = channel.stream_stream("/t/stream")()
            await stream.write(b"a")
            first = await stream.read()
            await stream.write(b"fail")
            return first, await stream.code(), await stream.details()

    first, code, details = run(main())

    assert (first, code, "secret" in details) == (b"a", grpc.StatusCode.INTERNAL, False)
    assert "a secret of ours" in caplog.text


@pytest.mark.parametrize("how", ["cancel", "disconnect"])
def test_the_function_of_a_stream_is_closed_when_its_client_leaves(run, how, caplog):
    calls = Calls()

    async def main():
        async with Served(calls) as served:
            channel = served.channel()
            stream = channel.stream_stream("/t/stream")()
            await stream.write(b"a")
            await stream.read()
            if how == "cancel":
                stream.cancel()
            await channel.close()
            await calls.ended.wait()
            return await served.ask("echo", b"next")

    following = run(main())

    assert (calls.noted, following) == (["closed"], b"next")
    assert caplog.records == []


def test_many_calls_share_a_connection(run):
    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            messages = [str(number).encode() for number in range(500)]
            answers = await asyncio.gather(*(answer(channel, "echo", message) for message in messages))
            return messages == answers

    assert run(main())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_calls_of_a_client_of_grpc_are_taken_in_one_step(loop, monkeypatch):
    counts = {"_receive_frames": 0, "_receive_headers": 0}

    def counting(name, take):
        def counted(self, *arguments):
            counts[name] += 1
            return take(self, *arguments)

        return counted

    for name in counts:
        monkeypatch.setattr(Connection, name, counting(name, getattr(Connection, name)))

    async def main():
        async with Served(Calls()) as served, served.channel() as channel:
            return [await answer(channel, "echo", b"%d" % number) for number in range(50)]

    with asyncio.Runner(loop_factory=loop) as runner:
        answers = runner.run(asyncio.wait_for(main(), 60))

    assert answers == [b"%d" % number for number in range(50)]
    assert counts["_receive_headers"] <= 10  # the first ones, which the header table is not settled for
    assert counts["_receive_frames"] <= 20  # besides, what grpc says of itself: settings, pings

"""ModelStreamInfer from an iterator to an iterator: ends, cancellation, and waiting without turning round and round."""

import asyncio
from contextlib import aclosing

import pytest

from naiad_grpc import streaming
from naiad_grpc.messages import message_class
from naiad_grpc.statuses import Code, RpcError


class Incoming:
    """The messages of a client that sends when a test likes."""

    def __init__(self):
        self._waiting = asyncio.Queue()
        self.read = 0

    def send(self, *messages):
        for message in messages:
            self._waiting.put_nowait(message)

    def close(self, error=None):
        self._waiting.put_nowait(error or StopAsyncIteration())

    def __aiter__(self):
        return self

    async def __anext__(self):
        message = await self._waiting.get()
        if isinstance(message, Exception):
            raise message
        self.read += 1
        return message


def run(coroutine):
    """What the coroutine gives; no task may be left over."""

    async def watched():
        result = await coroutine
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(watched())


def ids(messages):
    return [message_class("ModelStreamInferResponse").FromString(each).infer_response.id for each in messages]


def test_requests_are_answered_until_the_client_closes(inference, server, ask, context):
    server.at_once = lambda call: call.answer()

    async def all_responses():
        incoming = Incoming()
        incoming.send(ask("1"), ask("2"), ask("3"))
        incoming.close()
        return [message async for message in inference.stream(incoming, context())]

    assert ids(run(all_responses())) == ["1", "2", "3"]


def test_what_is_outstanding_is_finished_after_the_client_has_closed(inference, server, ask, context, settled):
    async def all_responses():
        incoming = Incoming()
        incoming.send(ask("1"))
        incoming.close()
        responses = asyncio.create_task(_collected(inference.stream(incoming, context())))
        await settled()
        assert not responses.done()
        server.calls[0].answer()
        return await responses

    assert ids(run(all_responses())) == ["1"]


def test_a_stream_without_requests_ends(inference, context):
    async def all_responses():
        incoming = Incoming()
        incoming.close()
        return await _collected(inference.stream(incoming, context()))

    assert run(all_responses()) == []


@pytest.mark.parametrize("reading", [False, True])
def test_a_client_that_leaves_takes_all_requests_back(inference, server, ask, context, settled, reading):
    async def leave():
        incoming = Incoming()
        incoming.send(ask("1", model="d"), ask("2"))

        async def read_on():
            async with aclosing(inference.stream(incoming, context())) as responses:
                async for _ in responses:
                    await asyncio.Event().wait()  # a transport that cannot send

        task = asyncio.create_task(read_on())
        await settled()
        if reading:
            server.calls[0].answer(final=False)
            await settled()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(leave())

    assert [call.commands for call in server.calls] == [["cancel"], ["cancel"]]


def test_an_error_of_the_transport_ends_the_stream(inference, server, ask, context):
    async def broken():
        incoming = Incoming()
        incoming.send(ask("1"))
        incoming.close(RpcError(Code.ABORTED, "gone"))
        await _collected(inference.stream(incoming, context()))

    with pytest.raises(RpcError, match="gone"):
        run(broken())

    assert server.calls[0].commands == ["cancel"]


def test_the_first_error_ends_a_stream_whose_caller_asks_for_that(inference, ask, context):
    async def failing():
        incoming = Incoming()
        incoming.send(ask("1", model="unknown"))
        await _collected(inference.stream(incoming, context(("triton_grpc_error", "true"))))

    with pytest.raises(RpcError) as raised:
        run(failing())

    assert raised.value.code is Code.NOT_FOUND


def test_no_more_requests_are_read_than_there_is_room_for(inference, server, ask, context, settled, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_OPEN", 2)

    async def flood():
        incoming = Incoming()
        incoming.send(*(ask(str(number)) for number in range(5)))
        incoming.close()
        async with aclosing(inference.stream(incoming, context())) as responses:
            first = asyncio.create_task(anext(responses))
            await settled()
            assert incoming.read == 2
            server.calls[0].answer()
            await first
            await settled()
            assert incoming.read == 3
            server.at_once = lambda call: call.answer()
            server.calls[1].answer()
            server.calls[2].answer()
            return [await first, *[message async for message in responses]]

    assert ids(run(flood())) == ["0", "1", "2", "3", "4"]


def test_no_requests_are_read_while_the_client_does_not_read(inference, server, ask, context, settled, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_READY", 4)
    server.at_once = lambda call: call.answer()

    async def deaf():
        incoming = Incoming()
        incoming.send(*(ask(str(number)) for number in range(20)))
        incoming.close()
        async with aclosing(inference.stream(incoming, context())) as responses:
            got = [await anext(responses)]
            await settled()
            read = incoming.read
            got += [message async for message in responses]
            return read, got

    read, got = run(deaf())
    assert read < 10
    assert ids(got) == [str(number) for number in range(20)]


def test_one_wake_up_takes_all_that_has_come_meanwhile(inference, server, ask, context, settled):
    async def burst():
        incoming = Incoming()
        incoming.send(ask("1", model="d"))
        got = []

        async def read_on():
            async with aclosing(inference.stream(incoming, context())) as responses:
                async for message in responses:
                    got.append(message)

        task = asyncio.create_task(read_on())
        await settled()
        for _ in range(10):
            server.calls[0].answer(final=False)
        await asyncio.sleep(0)
        count = len(got)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return count

    assert run(burst()) == 10


async def _collected(responses):
    async with aclosing(responses):
        return [message async for message in responses]

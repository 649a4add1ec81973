"""Calls that may have many responses."""

import asyncio
import threading
from pathlib import Path

import pytest

from naiad.backend import Answer, Batch
from naiad.errors import (
    UnsupportedError,
)
from naiad_kit.calls import ModelCalls
from naiad_testing.in_loop import off_the_loop, request

from .models_that_call import Calling, double, doubles_through, output_of, reply, value, value_of


@pytest.fixture
def calling(tmp_path: Path) -> Calling:
    """A repository with the model double."""
    calling = Calling(tmp_path)
    calling.add("double", double)
    return calling


async def test_a_model_that_is_not_decoupled_streams_its_one_response(calling: Calling) -> None:
    def streams(batch: Batch, models: ModelCalls) -> Answer:
        return output_of(*(value(response) for response in models.stream(request("double", 3))))

    calling.add("outer", streams)

    async with calling.running() as server:
        assert (await server.infer(request("outer", 1))).outputs["OUTPUT"].array.tolist() == [6]


DECOUPLED = "model_transaction_policy { decoupled: true }\n"


def counts(batch: Batch, _: ModelCalls) -> Answer:
    sender = batch.sender(0)
    for number in range(int(value_of(batch))):
        if not sender.send(reply(number)):
            break
    sender.send(None, final=True)
    return [None]


async def test_the_responses_of_a_decoupled_model_come_one_by_one(calling: Calling) -> None:
    def sums(batch: Batch, models: ModelCalls) -> Answer:
        *responses, last = models.stream(request("counts", 100))
        assert last.is_empty
        return output_of(sum(map(value, responses)))

    calling.add("counts", counts, DECOUPLED)
    calling.add("outer", sums)

    async with calling.running() as server:
        assert value(await server.infer(request("outer", 1))) == 4950


async def test_a_decoupled_model_cannot_be_asked_for_one_response(calling: Calling) -> None:
    calling.add("counts", counts, DECOUPLED)
    calling.add("outer", doubles_through("counts"))

    async with calling.running() as server:
        with pytest.raises(UnsupportedError, match="decoupled transaction policy"):
            await server.infer(request("outer", 1))


async def test_a_called_model_is_held_back_by_a_caller_that_does_not_read(calling: Calling) -> None:
    sent: list[int] = []
    held_back, read_on = threading.Event(), threading.Event()

    def counts_what_it_sends(batch: Batch, _: ModelCalls) -> Answer:
        sender = batch.sender(0)
        for number in range(1000):
            room = sender.post(reply(number))
            sent.append(number)
            if room is not None:
                held_back.set()
                room.result()
        sender.send(None, final=True)
        return [None]

    def reads_late(batch: Batch, models: ModelCalls) -> Answer:
        responses = models.stream(request("counts", 1))
        first = value(next(responses))
        read_on.wait(10)
        return output_of(first, sum(not response.is_empty for response in responses))

    calling.add("counts", counts_what_it_sends, DECOUPLED)
    calling.add("outer", reads_late)

    async with calling.running() as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 1)))
        await off_the_loop(held_back.wait)
        sent_when_held_back = len(sent)
        read_on.set()
        response = await answer

    assert sent_when_held_back < 200
    assert response.outputs["OUTPUT"].array.tolist() == [0, 999]


@pytest.mark.parametrize("leave", ["close", "drop"])
async def test_responses_that_are_not_wanted_any_more_are_taken_back(calling: Calling, leave: str) -> None:
    cancelled = threading.Event()

    def sends_for_ever(batch: Batch, _: ModelCalls) -> Answer:
        sender = batch.sender(0)
        while sender.send(reply(1)):
            pass
        cancelled.set()
        sender.send(None, final=True)
        return [None]

    def reads_one(batch: Batch, models: ModelCalls) -> Answer:
        responses = models.stream(request("endless", 1))
        next(responses)
        if leave == "close":
            responses.close()
            assert list(responses) == []
        del responses
        assert cancelled.wait(10)
        return output_of(1)

    calling.add("endless", sends_for_ever, DECOUPLED)
    calling.add("outer", reads_one)

    async with calling.running() as server:
        assert value(await server.infer(request("outer", 1))) == 1

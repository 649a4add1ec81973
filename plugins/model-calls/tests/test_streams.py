"""Calls that may have many responses."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from naiad.backend import Answer, Batch
from naiad.errors import (
    UnsupportedError,
)
from naiad_kit.calls import ModelCalls
from naiad_testing.in_loop import off_the_loop, request
from naiad_testing.loops import passing_time

from .models_that_call import Calling, doubles_through, output_of, reply, value, value_of


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


def sends_many(batch: Batch, models: ModelCalls) -> Answer:
    sender = batch.sender(0)
    for number in range(int(value_of(batch))):
        sender.send(reply(number))
    sender.send(None, final=True)
    return [None]


def reads_first(models: ModelCalls) -> float:
    """One call while the stream of another is being read: the second waits until the first has been sent."""
    responses = models.stream(request("many", 2000))
    next(responses)
    small = sum(1 for _ in models.stream(request("many", 3)))
    return small + sum(1 for _ in responses)


def reads_later(models: ModelCalls) -> float:
    """Nothing is read of the first while the second is waited for."""
    first = models.stream(request("many", 2000))
    small = sum(1 for _ in models.stream(request("many", 3)))
    return small + sum(1 for _ in first)


def reads_through_another(models: ModelCalls) -> float:
    responses = models.stream(request("many", 2000))
    next(responses)
    return value(models.infer(request("between", 5))) + sum(1 for _ in responses)


@pytest.mark.parametrize(
    ("behaviour", "expected"), [(reads_first, 2004), (reads_later, 2005), (reads_through_another, 2006)]
)
async def test_a_model_that_streams_is_not_held_back_by_a_caller_that_waits_for_it(
    calling: Calling, behaviour: Callable[[ModelCalls], float], expected: int
) -> None:
    calling.add("many", sends_many, DECOUPLED)
    calling.add(
        "between", lambda batch, models: output_of(sum(1 for _ in models.stream(request("many", value_of(batch)))))
    )
    calling.add("outer", lambda batch, models: output_of(behaviour(models)))

    async with calling.running() as server:
        with passing_time():
            assert value(await server.infer(request("outer", 1))) == expected

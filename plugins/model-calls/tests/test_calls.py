"""Calls from models to other models, through a whole server without a frontend."""

import asyncio
import threading
from time import monotonic

import pytest

from naiad.backend import Answer, Batch
from naiad.errors import (
    InvalidArgumentError,
    ModelFailedError,
    NaiadError,
    NotFoundError,
    UnsupportedError,
)
from naiad_kit.calls import ModelCalls, models_of
from naiad_testing.in_loop import request

from .models_that_call import Calling, double, doubles_through, output_of, value


async def test_a_model_answers_with_what_another_made(calling: Calling) -> None:
    calling.add("outer", doubles_through("double"))

    async with calling.running() as server:
        response = await server.infer(request("outer", 4))

        assert value(response) == 9
        assert [each.inference_count for each in server.statistics()] == [1, 1]


async def test_calls_that_were_begun_go_on_at_the_same_time(calling: Calling) -> None:
    both = threading.Barrier(2)

    def waits_for_the_other(batch: Batch, models: ModelCalls) -> Answer:
        both.wait(10)
        return double(batch, models)

    def asks_two(batch: Batch, models: ModelCalls) -> Answer:
        begun = [models.begin(request("pair", number)) for number in (1, 2)]
        return output_of(*(value(future.result()) for future in begun))

    calling.add("pair", waits_for_the_other, "instance_group { count: 2 }")
    calling.add("outer", asks_two)

    async with calling.running() as server:
        response = await server.infer(request("outer", 0))

    assert response.outputs["OUTPUT"].array.tolist() == [2, 4]


async def test_the_error_of_a_call_keeps_its_kind(calling: Calling) -> None:
    raised: list[NaiadError] = []

    def asks_wrongly(batch: Batch, models: ModelCalls) -> Answer:
        for wrong in (request("nobody", 1), request("double", version=7), request("broken", 1)):
            with pytest.raises(NaiadError) as caught:
                models.infer(wrong)
            raised.append(caught.value)
        raise raised[0]

    def breaks(batch: Batch, models: ModelCalls) -> Answer:
        raise ValueError("it is broken")

    calling.add("broken", breaks)
    calling.add("outer", asks_wrongly)

    async with calling.running() as server:
        with pytest.raises(NotFoundError, match="'nobody' is not found"):
            await server.infer(request("outer", 1))

    assert [type(error) for error in raised] == [NotFoundError, NotFoundError, ModelFailedError]


async def test_a_call_has_the_deadline_and_priority_of_the_request_that_it_is_made_for(calling: Calling) -> None:
    seen: list[tuple[float | None, int]] = []

    def looks(batch: Batch, _: ModelCalls) -> Answer:
        seen.append((batch.requests[0].deadline, batch.requests[0].priority))
        return output_of(1)

    def asks_twice(batch: Batch, models: ModelCalls) -> Answer:
        models.infer(request("looks", 1))
        models.infer(request("looks", 1, deadline=soon, priority=7))
        return output_of(1)

    calling.add("looks", looks)
    calling.add("outer", asks_twice)
    soon, late = monotonic() + 50, monotonic() + 100

    async with calling.running() as server:
        await server.infer(request("outer", 1, deadline=late, priority=3))

    assert seen == [(late, 3), (soon, 7)]


async def test_a_called_model_cannot_write_into_the_arrays_of_its_caller(calling: Calling) -> None:
    def is_writeable(batch: Batch, _: ModelCalls) -> Answer:
        return output_of(float(batch.input("INPUT").flags.writeable))

    calling.add("looks", is_writeable)
    calling.add("outer", doubles_through("looks"))

    async with calling.running() as server:
        assert value(await server.infer(request("outer", 1))) == 1


async def test_a_model_without_requests_of_its_own_may_call(calling: Calling) -> None:
    async with calling.running():
        models = models_of(calling.contexts["double"])

        response = await asyncio.to_thread(models.infer, request("double", 21))

    assert value(response) == 42


async def test_the_event_loop_cannot_wait_for_a_model_and_can_begin_a_call(calling: Calling) -> None:
    async with calling.running():
        models = models_of(calling.contexts["double"])

        with pytest.raises(UnsupportedError, match="cannot wait for another model"):
            models.infer(request("double", 1))
        with pytest.raises(UnsupportedError, match="cannot wait for another model"):
            next(models.stream(request("double", 1)))

        assert value(await asyncio.wrap_future(models.begin(request("double", 1)))) == 2


async def test_what_is_wrong_with_the_request_of_a_call_is_reported(calling: Calling) -> None:
    def asks_wrongly(batch: Batch, models: ModelCalls) -> Answer:
        wrong = request("double", 1)
        wrong.inputs = {}
        models.infer(wrong)
        return output_of(1)

    calling.add("outer", asks_wrongly)

    async with calling.running() as server:
        with pytest.raises(InvalidArgumentError, match="expected 1 inputs"):
            await server.infer(request("outer", 1))

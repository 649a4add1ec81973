"""Calls whose caller leaves, whose time is over, or whose server or model goes away."""

import asyncio
import threading
from concurrent.futures import Future
from time import monotonic

import pytest

from naiad.backend import Answer, Batch
from naiad.errors import (
    DeadlineExceededError,
    ModelNotReadyError,
    NaiadError,
    RequestCancelledError,
    ShuttingDownError,
    WorkerDiedError,
)
from naiad_kit.calls import ModelCalls, models_of
from naiad_testing.in_loop import off_the_loop, request
from naiad_testing.loops import turns, until

from .models_that_call import Calling, doubles_through, output_of, reply, value, value_of


async def test_a_future_that_is_cancelled_takes_its_request_back(calling: Calling) -> None:
    executing, release = threading.Event(), threading.Event()

    def is_held(batch: Batch, _: ModelCalls) -> Answer:
        kept.append(batch)
        executing.set()
        assert release.wait(10)
        return output_of(float(batch.requests[0].cancelled))

    def cancels(batch: Batch, models: ModelCalls) -> Answer:
        future = models.begin(request("held", 1))
        assert executing.wait(10)
        assert future.cancel()
        return output_of(1)

    kept: list[Batch] = []
    calling.add("held", is_held)
    calling.add("outer", cancels)

    async with calling.running() as server:
        await server.infer(request("outer", 1))
        await until(lambda: kept[0].requests[0].cancelled)
        release.set()


async def test_a_caller_that_leaves_takes_the_calls_made_for_it_along(calling: Calling) -> None:
    executing, message = threading.Event(), Future[NaiadError]()

    def waits_until_cancelled(batch: Batch, _: ModelCalls) -> Answer:
        closed = threading.Event()
        batch.requests[0].on_cancelled = closed.set
        executing.set()
        assert closed.wait(10)
        return output_of(1)

    def asks(batch: Batch, models: ModelCalls) -> Answer:
        try:
            models.infer(request("inner", 1))
        except NaiadError as error:
            message.set_result(error)
        return output_of(1)

    calling.add("inner", waits_until_cancelled)
    calling.add("outer", asks)

    async with calling.running() as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 1)))
        await off_the_loop(executing.wait)
        answer.cancel()

        error = await asyncio.wrap_future(message)

    assert isinstance(error, RequestCancelledError)
    assert "the callers of the requests that this call was made for have left" in str(error)


async def test_a_call_for_callers_who_have_left_already_is_not_made(calling: Calling) -> None:
    executing, closed, message = threading.Event(), threading.Event(), Future[NaiadError]()

    def asks_too_late(batch: Batch, models: ModelCalls) -> Answer:
        executing.set()
        assert closed.wait(10)
        with pytest.raises(RequestCancelledError) as caught:
            models.infer(request("double", 1))
        message.set_result(caught.value)
        return output_of(1)

    calling.add("outer", asks_too_late)

    async with calling.running() as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 1)))
        await off_the_loop(executing.wait)
        answer.cancel()
        await turns()
        closed.set()
        await asyncio.wrap_future(message)

        assert server.statistics("double")[0].inference_count == 0


async def test_the_deadline_of_the_outer_request_ends_the_inner_one(calling: Calling) -> None:
    executing, release, message = threading.Event(), threading.Event(), Future[NaiadError]()

    def is_held(batch: Batch, _: ModelCalls) -> Answer:
        executing.set()
        release.wait(10)
        return output_of(1)

    def asks(batch: Batch, models: ModelCalls) -> Answer:
        with pytest.raises(NaiadError) as caught:
            models.infer(request("held", 1))
        message.set_result(caught.value)
        return output_of(1)

    calling.add("held", is_held)
    calling.add("outer", asks)

    async with calling.running() as server:
        loop = asyncio.get_running_loop()
        answer = asyncio.ensure_future(server.infer(request("outer", 1, deadline=monotonic() + 60)))
        await off_the_loop(executing.wait)
        loop.jump(100)  # type: ignore[attr-defined]
        with pytest.raises(DeadlineExceededError):
            await answer
        assert isinstance(await asyncio.wrap_future(message), DeadlineExceededError | RequestCancelledError)
        release.set()


async def test_no_model_calls_after_the_server_has_stopped(calling: Calling) -> None:
    async with calling.running():
        models = models_of(calling.contexts["double"])

    for ask in (models.infer, models.begin, models.stream):
        with pytest.raises(ShuttingDownError, match="the server has stopped"):
            await asyncio.to_thread(ask, request("double", 1))


async def test_a_server_that_stops_still_answers_the_calls_of_what_it_took_in(calling: Calling) -> None:
    executing, go_on = threading.Event(), threading.Event()

    def asks_late(batch: Batch, models: ModelCalls) -> Answer:
        executing.set()
        assert go_on.wait(10)
        return output_of(value(models.infer(request("middle", value_of(batch)))))

    calling.add("middle", doubles_through("double"))
    calling.add("outer", asks_late)

    async with calling.running() as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 4)))
        await off_the_loop(executing.wait)
        stopping = asyncio.ensure_future(server.stop())
        await turns()
        go_on.set()

        assert await stopping
        assert value(await answer) == 9


async def test_a_model_that_is_unloaded_answers_what_it_took_in_with_its_calls(calling: Calling) -> None:
    executing, go_on = threading.Event(), threading.Event()

    def asks_late(batch: Batch, models: ModelCalls) -> Answer:
        executing.set()
        assert go_on.wait(10)
        return output_of(value(models.infer(request("double", value_of(batch)))))

    calling.add("outer", asks_late)

    async with calling.running(model_control_mode="explicit", load_model=("*",)) as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 4)))
        await off_the_loop(executing.wait)
        await server.unload("outer")
        go_on.set()

        assert value(await answer) == 8


async def test_a_call_to_a_model_that_was_unloaded_says_so(calling: Calling) -> None:
    calling.add("outer", doubles_through("double"))

    async with calling.running(model_control_mode="explicit", load_model=("*",)) as server:
        await server.unload("double")

        with pytest.raises(ModelNotReadyError, match="unloaded"):
            await server.infer(request("outer", 4))


async def test_a_model_that_waits_when_the_time_to_stop_is_over_is_reported(calling: Calling) -> None:
    executing, release, message = threading.Event(), threading.Event(), Future[NaiadError]()

    def is_held(batch: Batch, _: ModelCalls) -> Answer:
        executing.set()
        release.wait(10)
        return output_of(1)

    def asks(batch: Batch, models: ModelCalls) -> Answer:
        with pytest.raises(NaiadError) as caught:
            models.infer(request("held", 1))
        message.set_result(caught.value)
        return output_of(1)

    calling.add("held", is_held)
    calling.add("outer", asks)

    async with calling.running(exit_timeout_secs=0) as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 1)))
        await off_the_loop(executing.wait)
        stopping = asyncio.ensure_future(server.stop())
        await turns(50)
        asyncio.get_running_loop().jump(10)  # type: ignore[attr-defined]
        with pytest.raises(ShuttingDownError):
            await answer
        assert isinstance(await asyncio.wrap_future(message), ShuttingDownError | RequestCancelledError)
        release.set()
        await stopping


async def test_a_model_may_call_for_a_request_that_it_has_answered(calling: Calling) -> None:
    called = Future[float]()

    def answers_first(batch: Batch, models: ModelCalls) -> Answer:
        batch.sender(0).send(reply(1), final=True)
        answered.wait(10)
        called.set_result(value(models.infer(request("double", 21))))
        return [None]

    answered = threading.Event()
    calling.add("outer", answers_first, "model_transaction_policy { decoupled: true }\n")

    async with calling.running() as server:
        values = [value(response) async for response in server.stream(request("outer", 1))]
        answered.set()

        assert (values, await asyncio.wrap_future(called)) == ([1], 42)


async def test_a_worker_that_dies_in_a_call_is_reported_to_the_caller(calling: Calling) -> None:
    def leaves(batch: Batch, models: ModelCalls) -> Answer:
        raise SystemExit("the model left")

    calling.add("dies", leaves)
    calling.add("outer", doubles_through("dies"))

    async with calling.running() as server:
        with pytest.raises(WorkerDiedError, match="the model left"):
            await server.infer(request("outer", 1))

"""Calls from models to other models, through a whole server without a frontend."""

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from time import monotonic

import pytest

from naiad.backend import Answer, Batch
from naiad.calls import ModelCalls
from naiad.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ModelFailedError,
    ModelNotReadyError,
    NaiadError,
    NotFoundError,
    RequestCancelledError,
    ShuttingDownError,
    UnsupportedError,
)

from .loops import turns, until
from .models_that_call import Calling, double, given, reply, value, value_of
from .serving import off_the_loop, request


def doubles_through(name: str):
    """A model that adds 1 to what another model makes of its input."""

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        return given(value(models.infer(request(name, value_of(batch)))) + 1)

    return behaviour


@pytest.fixture
def calling(tmp_path: Path) -> Calling:
    """A repository with the model double."""
    calling = Calling(tmp_path)
    calling.add("double", double)
    return calling


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
        return given(*(value(future.result()) for future in begun))

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


async def test_a_model_that_is_not_decoupled_streams_its_one_response(calling: Calling) -> None:
    def streams(batch: Batch, models: ModelCalls) -> Answer:
        return given(*(value(response) for response in models.stream(request("double", 3))))

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
        return given(sum(value(response) for response in models.stream(request("counts", 100))))

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
        return given(first, sum(1 for _ in responses))

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
        return given(1)

    calling.add("endless", sends_for_ever, DECOUPLED)
    calling.add("outer", reads_one)

    async with calling.running() as server:
        assert value(await server.infer(request("outer", 1))) == 1


async def test_a_future_that_is_cancelled_takes_its_request_back(calling: Calling) -> None:
    executing, release = threading.Event(), threading.Event()

    def is_held(batch: Batch, _: ModelCalls) -> Answer:
        executing.set()
        assert release.wait(10)
        return given(float(batch.requests[0].cancelled))

    def cancels(batch: Batch, models: ModelCalls) -> Answer:
        future = models.begin(request("held", 1))
        assert executing.wait(10)
        assert future.cancel()
        kept.append(batch)
        return given(1)

    kept: list[Batch] = []
    calling.add("held", is_held)
    calling.add("outer", cancels)

    async with calling.running() as server:
        await server.infer(request("outer", 1))
        (held,) = server._models.find("held").executing()
        await until(lambda: held.calls[0].over)
        assert held.batch.requests[0].cancelled
        release.set()


async def test_a_caller_that_leaves_takes_the_calls_made_for_it_along(calling: Calling) -> None:
    executing, told = threading.Event(), Future[NaiadError]()

    def waits_until_cancelled(batch: Batch, _: ModelCalls) -> Answer:
        left = threading.Event()
        batch.requests[0].on_cancelled = left.set
        executing.set()
        assert left.wait(10)
        return given(1)

    def asks(batch: Batch, models: ModelCalls) -> Answer:
        try:
            models.infer(request("inner", 1))
        except NaiadError as error:
            told.set_result(error)
        return given(1)

    calling.add("inner", waits_until_cancelled)
    calling.add("outer", asks)

    async with calling.running() as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 1)))
        await off_the_loop(executing.wait)
        answer.cancel()

        error = await asyncio.wrap_future(told)

    assert isinstance(error, RequestCancelledError)
    assert "the callers of the requests that this call was made for have left" in str(error)


async def test_a_call_for_callers_who_have_left_already_is_not_made(calling: Calling) -> None:
    executing, left, told = threading.Event(), threading.Event(), Future[NaiadError]()

    def asks_too_late(batch: Batch, models: ModelCalls) -> Answer:
        executing.set()
        assert left.wait(10)
        with pytest.raises(RequestCancelledError) as caught:
            models.infer(request("double", 1))
        told.set_result(caught.value)
        return given(1)

    calling.add("outer", asks_too_late)

    async with calling.running() as server:
        answer = asyncio.ensure_future(server.infer(request("outer", 1)))
        await off_the_loop(executing.wait)
        answer.cancel()
        await turns()
        left.set()
        await asyncio.wrap_future(told)

        assert server.statistics("double")[0].inference_count == 0


async def test_a_call_has_the_deadline_and_priority_of_the_request_that_it_is_made_for(calling: Calling) -> None:
    seen: list[tuple[float | None, int]] = []

    def looks(batch: Batch, _: ModelCalls) -> Answer:
        seen.append((batch.requests[0].deadline, batch.requests[0].priority))
        return given(1)

    def asks_twice(batch: Batch, models: ModelCalls) -> Answer:
        models.infer(request("looks", 1))
        models.infer(request("looks", 1, deadline=soon, priority=7))
        return given(1)

    calling.add("looks", looks)
    calling.add("outer", asks_twice)
    soon, late = monotonic() + 50, monotonic() + 100

    async with calling.running() as server:
        await server.infer(request("outer", 1, deadline=late, priority=3))

    assert seen == [(late, 3), (soon, 7)]


async def test_the_deadline_of_the_outer_request_ends_the_inner_one(calling: Calling) -> None:
    executing, release, told = threading.Event(), threading.Event(), Future[NaiadError]()

    def is_held(batch: Batch, _: ModelCalls) -> Answer:
        executing.set()
        release.wait(10)
        return given(1)

    def asks(batch: Batch, models: ModelCalls) -> Answer:
        with pytest.raises(NaiadError) as caught:
            models.infer(request("held", 1))
        told.set_result(caught.value)
        return given(1)

    calling.add("held", is_held)
    calling.add("outer", asks)

    async with calling.running() as server:
        loop = asyncio.get_running_loop()
        answer = asyncio.ensure_future(server.infer(request("outer", 1, deadline=monotonic() + 60)))
        await off_the_loop(executing.wait)
        loop.jump(100)  # type: ignore[attr-defined]
        with pytest.raises(DeadlineExceededError):
            await answer
        assert isinstance(await asyncio.wrap_future(told), DeadlineExceededError | RequestCancelledError)
        release.set()


async def test_a_called_model_cannot_write_into_the_arrays_of_its_caller(calling: Calling) -> None:
    def is_writeable(batch: Batch, _: ModelCalls) -> Answer:
        return given(float(batch.input("INPUT").flags.writeable))

    calling.add("looks", is_writeable)
    calling.add("outer", doubles_through("looks"))

    async with calling.running() as server:
        assert value(await server.infer(request("outer", 1))) == 1


async def test_a_model_without_requests_of_its_own_may_call(calling: Calling) -> None:
    async with calling.running():
        models = calling.contexts["double"].models

        response = await asyncio.to_thread(models.infer, request("double", 21))

    assert value(response) == 42


async def test_the_event_loop_cannot_wait_for_a_model_and_can_begin_a_call(calling: Calling) -> None:
    async with calling.running():
        models = calling.contexts["double"].models

        with pytest.raises(UnsupportedError, match="cannot wait for another model"):
            models.infer(request("double", 1))
        with pytest.raises(UnsupportedError, match="cannot wait for another model"):
            next(models.stream(request("double", 1)))

        assert value(await asyncio.wrap_future(models.begin(request("double", 1)))) == 2


async def test_what_is_wrong_with_the_request_of_a_call_is_told(calling: Calling) -> None:
    def asks_wrongly(batch: Batch, models: ModelCalls) -> Answer:
        wrong = request("double", 1)
        wrong.inputs = {}
        models.infer(wrong)
        return given(1)

    calling.add("outer", asks_wrongly)

    async with calling.running() as server:
        with pytest.raises(InvalidArgumentError, match="expected 1 inputs but got 0"):
            await server.infer(request("outer", 1))


async def test_no_model_calls_after_the_server_has_stopped(calling: Calling) -> None:
    async with calling.running():
        models = calling.contexts["double"].models

    for ask in (models.infer, models.begin, models.stream):
        with pytest.raises(ShuttingDownError, match="the server has stopped"):
            await asyncio.to_thread(ask, request("double", 1))


async def test_a_server_that_stops_still_answers_the_calls_of_what_it_took_in(calling: Calling) -> None:
    executing, go_on = threading.Event(), threading.Event()

    def asks_late(batch: Batch, models: ModelCalls) -> Answer:
        executing.set()
        assert go_on.wait(10)
        return given(value(models.infer(request("middle", value_of(batch)))))

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
        return given(value(models.infer(request("double", value_of(batch)))))

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


async def test_a_model_that_waits_when_the_time_to_stop_is_over_is_told(calling: Calling) -> None:
    executing, release, told = threading.Event(), threading.Event(), Future[NaiadError]()

    def is_held(batch: Batch, _: ModelCalls) -> Answer:
        executing.set()
        release.wait(10)
        return given(1)

    def asks(batch: Batch, models: ModelCalls) -> Answer:
        with pytest.raises(NaiadError) as caught:
            models.infer(request("held", 1))
        told.set_result(caught.value)
        return given(1)

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
        assert isinstance(await asyncio.wrap_future(told), ShuttingDownError | RequestCancelledError)
        release.set()
        await stopping

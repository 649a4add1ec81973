"""Answers that come later, too late or never: asynchronous calls, timeouts of the client, cancellation, and streams."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from ..running import until
from .driving import Driven
from .gathering import Gathered

X = np.array([1.0], np.float32)
SHORT = 0.2
"""Seconds after which a client gives up on a model that never answers."""


def counting(client: Driven, count: int) -> list[Any]:
    """The inputs of the model `repeat`."""
    return [client.tensor("COUNT", np.array([count], np.int32), "INT32")]


def index(result: Any) -> int:
    return int(result.as_numpy("INDEX")[0])


def wait_for(told: Path, what: str) -> None:
    """Return when a model has told that."""
    until(lambda: list(told.glob(f"{what}-*")))


def test_many_http_requests_are_asked_before_one_is_answered(make_client: Callable[..., Driven]) -> None:
    http_client = make_client("http", concurrency=4)

    asked = [http_client.async_infer("echo", [http_client.tensor("x", X + number)]) for number in range(16)]
    answers = [float(each.get_result().as_numpy("output")[0]) for each in asked]

    assert answers == [1.0 + number for number in range(16)]


def test_an_asynchronous_http_request_tells_its_error_when_it_is_asked_for(http_client: Driven) -> None:
    asked = http_client.async_infer("nothing", [http_client.tensor("x", X)])

    with pytest.raises(InferenceServerException, match="'nothing' is not found"):
        asked.get_result()


def test_grpc_requests_are_answered_to_callbacks(grpc_client: Driven) -> None:
    gathered = Gathered()

    for number in range(16):
        grpc_client.async_infer("echo", [grpc_client.tensor("x", X + number)], gathered, request_id=str(number))
    answers = {each.get_response().id: float(each.as_numpy("output")[0]) for each in gathered.take(16)}

    assert answers == {str(number): 1.0 + number for number in range(16)}


def test_a_callback_is_given_the_error(grpc_client: Driven) -> None:
    gathered = Gathered()

    grpc_client.async_infer("nothing", [grpc_client.tensor("x", X)], gathered)

    assert gathered.next().status() == "StatusCode.NOT_FOUND"


def test_an_http_client_gives_up_and_its_model_is_told(make_client: Callable[..., Driven], told: Path) -> None:
    http_client = make_client("http", network_timeout=SHORT)

    with pytest.raises(OSError, match="timed out"):
        http_client.infer("patient", [http_client.tensor("x", X)])

    http_client.close()
    wait_for(told, "cancelled")


def test_an_asynchronous_http_client_gives_up_and_its_model_is_told(
    make_client: Callable[..., Driven], told: Path
) -> None:
    http_aio_client = make_client("http.aio", conn_timeout=SHORT)

    with pytest.raises(TimeoutError):
        http_aio_client.infer("patient", [http_aio_client.tensor("x", X)])

    wait_for(told, "cancelled")


def test_a_grpc_client_gives_up_and_its_model_is_told(rpc_client: Driven, told: Path) -> None:
    with pytest.raises(InferenceServerException, match=r"(?i)deadline") as caught:
        rpc_client.infer("patient", [rpc_client.tensor("x", X)], client_timeout=SHORT)

    assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"
    wait_for(told, "cancelled")


def test_a_grpc_request_is_taken_back_while_it_executes(grpc_client: Driven, told: Path) -> None:
    gathered = Gathered()
    call = grpc_client.async_infer("patient", [grpc_client.tensor("x", X)], gathered)
    wait_for(told, "began")

    call.cancel()

    assert gathered.next().status() == "StatusCode.CANCELLED"
    wait_for(told, "cancelled")


def test_an_asynchronous_grpc_request_is_taken_back_while_it_executes(grpc_aio_client: Driven, told: Path) -> None:
    client = grpc_aio_client.itself

    async def asked_and_taken_back() -> bool:
        task = asyncio.create_task(client.infer("patient", [grpc_aio_client.tensor("x", X)]))
        await asyncio.to_thread(wait_for, told, "began")
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        return isinstance(outcome, asyncio.CancelledError)

    assert grpc_aio_client.run(asked_and_taken_back())
    wait_for(told, "cancelled")


def test_a_stream_gives_the_responses_of_a_decoupled_model_in_order(grpc_client: Driven) -> None:
    gathered = Gathered()

    grpc_client.start_stream(gathered)
    grpc_client.async_stream_infer("repeat", counting(grpc_client, 5), request_id="r")
    answers = gathered.take(5)
    grpc_client.stop_stream()

    assert [index(each) for each in answers] == [0, 1, 2, 3, 4]
    assert {each.get_response().id for each in answers} == {"r"}


def test_a_stream_says_which_response_is_the_last(grpc_client: Driven) -> None:
    gathered = Gathered()

    grpc_client.start_stream(gathered)
    grpc_client.async_stream_infer("repeat", counting(grpc_client, 2), enable_empty_final_response=True)
    answers = [each.get_response() for each in gathered.take(3)]
    grpc_client.stop_stream()

    assert [each.parameters["triton_final_response"].bool_param for each in answers] == [False, False, True]
    assert [len(each.outputs) for each in answers] == [1, 1, 0]


def test_a_stream_carries_ordinary_models_sequences_and_errors_too(grpc_client: Driven) -> None:
    gathered = Gathered()
    x = grpc_client.tensor("x", X)

    grpc_client.start_stream(gathered, compression_algorithm="gzip")
    grpc_client.async_stream_infer("echo", [x], request_id="a", sequence_id=5, sequence_start=True)
    grpc_client.async_stream_infer("nothing", [x], request_id="b")
    grpc_client.async_stream_infer("repeat", counting(grpc_client, -1), request_id="c")
    good, unknown, counted, failed = gathered.take(4)
    grpc_client.async_stream_infer("echo", [x], request_id="d")
    again = gathered.next()
    grpc_client.stop_stream()

    assert [good.get_response().id, again.get_response().id] == ["a", "d"]
    assert "'nothing' is not found" in unknown.message()
    assert index(counted) == 0
    assert "counted below zero" in failed.message()


def test_stopping_a_stream_waits_for_what_is_on_its_way(grpc_client: Driven) -> None:
    gathered = Gathered()

    grpc_client.start_stream(gathered)
    grpc_client.async_stream_infer("repeat", counting(grpc_client, 500))
    grpc_client.stop_stream()

    assert [index(each) for each in gathered.take(500)] == list(range(500))


def test_cancelling_a_stream_takes_its_requests_back(grpc_client: Driven, told: Path) -> None:
    gathered = Gathered()

    grpc_client.start_stream(gathered)
    grpc_client.async_stream_infer("patient", [grpc_client.tensor("x", X)])
    wait_for(told, "began")
    grpc_client.stop_stream(cancel_requests=True)

    assert gathered.next().status() == "StatusCode.CANCELLED"
    wait_for(told, "cancelled")


def test_a_stream_that_takes_too_long_takes_its_requests_back(grpc_client: Driven, told: Path) -> None:
    gathered = Gathered()

    grpc_client.start_stream(gathered, stream_timeout=SHORT)
    grpc_client.async_stream_infer("patient", [grpc_client.tensor("x", X)])

    assert gathered.next().status() == "StatusCode.DEADLINE_EXCEEDED"
    wait_for(told, "cancelled")
    grpc_client.stop_stream()


def test_a_stream_in_error_mode_ends_with_the_first_error(grpc_client: Driven) -> None:
    gathered = Gathered()

    grpc_client.start_stream(gathered, headers={"triton_grpc_error": "true"})
    grpc_client.async_stream_infer("nothing", [grpc_client.tensor("x", X)])

    assert gathered.next().status() == "StatusCode.NOT_FOUND"
    grpc_client.stop_stream()


def test_an_asynchronous_stream_gives_responses_and_errors(grpc_aio_client: Driven) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        for name, count in (("a", 2), ("b", -1)):
            yield {"model_name": "repeat", "inputs": counting(grpc_aio_client, count), "request_id": name}

    async def gathered() -> list[Any]:
        answers = grpc_aio_client.stream_infer(requests())
        return [error or (result.get_response().id, index(result)) async for result, error in answers]

    *good, failed = sorted(grpc_aio_client.run(gathered()), key=lambda answer: isinstance(answer, Exception))
    assert sorted(good) == [("a", 0), ("a", 1), ("b", 0)]
    assert "counted below zero" in failed.message()


def test_an_asynchronous_stream_without_further_requests_takes_too_long_too(
    grpc_aio_client: Driven, told: Path
) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        yield {"model_name": "patient", "inputs": [grpc_aio_client.tensor("x", X)]}

    async def gathered() -> list[Any]:
        return [answer async for answer in grpc_aio_client.stream_infer(requests(), stream_timeout=SHORT)]

    with pytest.raises(grpc.aio.AioRpcError) as raised:
        grpc_aio_client.run(gathered())

    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_for(told, "cancelled")


def test_an_asynchronous_stream_is_cancelled(grpc_aio_client: Driven, told: Path) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        yield {"model_name": "patient", "inputs": [grpc_aio_client.tensor("x", X)]}
        await asyncio.get_running_loop().create_future()

    async def cancelled() -> bool:
        answers = grpc_aio_client.stream_infer(requests())
        first = asyncio.create_task(anext(answers))
        await asyncio.to_thread(wait_for, told, "began")
        answers.cancel()
        (outcome,) = await asyncio.gather(first, return_exceptions=True)
        return isinstance(outcome, asyncio.CancelledError)

    assert grpc_aio_client.run(cancelled())
    wait_for(told, "cancelled")

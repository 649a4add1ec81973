"""Sequences through a real server, by each kind of client of Triton's library."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from queue import Queue
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from ..clients.driving import Driven
from ..running import PATIENCE

MODELS = ["triton_direct", "native_oldest", "onnx_direct"]
_IDS = itertools.count(1000)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    """Every model that adds up."""
    return str(request.param)


def fresh() -> int:
    """An id that no other test has for a sequence."""
    return next(_IDS)


def steps(client: Driven, numbers: list[float]) -> Iterator[dict[str, Any]]:
    """What to send for a sequence of these numbers: tensors and flags."""
    for index, number in enumerate(numbers):
        inputs = [client.tensor("x", np.array([[number]], np.float32))]
        yield {"inputs": inputs, "sequence_start": index == 0, "sequence_end": index == len(numbers) - 1}


def total(result: Any) -> float:
    return float(result.as_numpy("y")[0, 0])


def run(client: Driven, model: str, sequence: int | str, numbers: list[float]) -> list[float]:
    """The answers to a sequence."""
    return [total(client.infer(model, sequence_id=sequence, **step)) for step in steps(client, numbers)]


@pytest.mark.parametrize("name", ["{}", "the sequence {}"])
def test_a_sequence_adds_up_from_start_to_end(client: Driven, model: str, name: str) -> None:
    sequence = name.format(fresh())

    assert run(client, model, int(sequence) if sequence.isdigit() else sequence, [1, 2, 3.5]) == [1, 3, 6.5]


def test_a_request_without_a_start_is_refused_as_the_client_s_mistake(client: Driven) -> None:
    with pytest.raises(InferenceServerException, match="START flag") as caught:
        client.infer("native_oldest", [client.tensor("x", np.zeros((1, 1), np.float32))], sequence_id=fresh())

    assert caught.value.status() == ("400" if client.is_web else "StatusCode.INVALID_ARGUMENT")


def test_requests_of_a_sequence_that_are_sent_at_once_keep_their_order(
    make_client: Callable[..., Driven], model: str
) -> None:
    client = make_client("grpc")
    came: Queue[Any] = Queue()
    names = [fresh() for _ in range(8)]

    client.start_stream(lambda result, error: came.put((result, error)))
    for turn in zip(*(steps(client, [name, 1, 1, 1]) for name in names), strict=True):
        for name, step in zip(names, turn, strict=True):
            client.async_stream_infer(model, sequence_id=name, request_id=str(name), **step)
    answers: dict[str, list[float]] = {}
    for _ in range(4 * len(names)):
        result, error = came.get(timeout=PATIENCE)
        assert error is None
        answers.setdefault(result.get_response().id, []).append(total(result))
    client.stop_stream()

    assert answers == {str(name): [name, name + 1, name + 2, name + 3] for name in names}


def test_an_asynchronous_stream_carries_sequences(make_client: Callable[..., Driven], model: str) -> None:
    client = make_client("grpc.aio")
    name = f"aio {fresh()}"

    async def requests() -> AsyncIterator[dict[str, Any]]:
        for step in steps(client, [1, 2, 3]):
            yield {"model_name": model, "sequence_id": name, **step}

    async def answers() -> list[float]:
        return [total(result) async for result, _error in client.itself.stream_infer(requests())]

    assert client.run(answers()) == [1, 3, 6]

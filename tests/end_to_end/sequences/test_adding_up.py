"""Sequences that go well, by each call of each client of Triton's library, alone and several at once."""

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import Any

import numpy as np
import pytest

from ..clients.driving import Driven
from ..running import PATIENCE
from .sources import STRATEGIES

KINDS = ("triton", "native", "onnx")
MODELS = [f"{kind}_{strategy}" for kind in KINDS for strategy in STRATEGIES]
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
    for place, number in enumerate(numbers):
        given = [client.tensor("x", np.array([[number]], np.float32))]
        yield {"inputs": given, "sequence_start": place == 0, "sequence_end": place == len(numbers) - 1}


def total(result: Any) -> float:
    return float(result.as_numpy("y")[0, 0])


def run(client: Driven, model: str, sequence: int | str, numbers: list[float]) -> list[float]:
    """The answers to a sequence."""
    return [total(client.infer(model, sequence_id=sequence, **step)) for step in steps(client, numbers)]


def test_a_sequence_adds_up_from_start_to_end(client: Driven, model: str) -> None:
    assert run(client, model, fresh(), [1, 2, 3.5]) == [1, 3, 6.5]


def test_a_sequence_has_a_text_for_a_name(client: Driven, model: str) -> None:
    assert run(client, model, f"the sequence {fresh()}", [5, 7]) == [5, 12]


def test_a_sequence_of_one_request_leaves_nothing_to_the_next(client: Driven, model: str) -> None:
    sequence = fresh()

    assert run(client, model, sequence, [4]) == [4]
    assert run(client, model, sequence, [8, 1]) == [8, 9]


def test_a_start_in_the_middle_begins_anew(client: Driven, model: str) -> None:
    sequence = fresh()
    first = next(steps(client, [2, 0]))

    before = [total(client.infer(model, sequence_id=sequence, **first)) for _ in range(2)]

    assert before == [2, 2]
    assert run(client, model, sequence, [1, 1]) == [1, 2]


def test_sequences_between_each_other_keep_to_themselves(client: Driven, model: str) -> None:
    names = [fresh() for _ in range(4)]
    turns = zip(*(steps(client, [10.0 * place, 1, 1]) for place in range(4)), strict=True)

    answers = [
        [total(client.infer(model, sequence_id=name, **step)) for name, step in zip(names, turn, strict=True)]
        for turn in turns
    ]

    assert answers == [[0, 10, 20, 30], [1, 11, 21, 31], [2, 12, 22, 32]]


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_more_sequences_than_slots_run_at_once(make_client: Callable[..., Driven], model: str, kind: str) -> None:
    names = [fresh() for _ in range(24)]

    def alone(name: int) -> list[float]:  # the client of HTTP belongs to the thread that makes it
        return run(make_client(kind), model, name, [name, 1, 1, 1, 1])

    with ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(alone, names))

    assert answers == [[name, name + 1, name + 2, name + 3, name + 4] for name in names]


@pytest.mark.parametrize("kind", ["http.aio", "grpc.aio"])
def test_asynchronous_clients_run_many_sequences_at_once(
    make_client: Callable[..., Driven], model: str, kind: str
) -> None:
    client = make_client(kind)

    async def alone(name: int) -> list[float]:
        asked = [(await client.itself.infer(model, sequence_id=name, **step)) for step in steps(client, [name, 1, 1])]
        return [total(each) for each in asked]

    async def together(names: list[int]) -> list[list[float]]:
        return await asyncio.gather(*map(alone, names))

    names = [fresh() for _ in range(24)]
    assert client.run(together(names)) == [[name, name + 1, name + 2] for name in names]


def test_sequences_take_turns_by_calls_that_are_answered_later(make_client: Callable[..., Driven], model: str) -> None:
    web, rpc = make_client("http", concurrency=4), make_client("grpc")
    names = [fresh() for _ in range(4)]

    def by_web(turn: list[tuple[int, dict[str, Any]]]) -> list[Any]:
        asked = [web.async_infer(model, sequence_id=name, **step) for name, step in turn]
        return [each.get_result() for each in asked]

    def by_rpc(turn: list[tuple[int, dict[str, Any]]]) -> list[Any]:
        came: Queue[Any] = Queue()
        for name, step in turn:
            answer = functools.partial(lambda name, result, error: came.put((name, error or result)), name)
            rpc.async_infer(model, callback=answer, sequence_id=name, **step)
        answers = dict(came.get(timeout=PATIENCE) for _ in turn)
        return [answers[name] for name, _ in turn]

    for client, ask in ((web, by_web), (rpc, by_rpc)):
        turns = zip(*(steps(client, [name, 1, 1]) for name in names), strict=True)
        answers = [[total(each) for each in ask(list(zip(names, turn, strict=True)))] for turn in turns]

        assert answers == [[name + more for name in names] for more in range(3)]


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


def test_a_state_that_is_an_output_too_is_shown(client: Driven) -> None:
    first, second = (
        client.infer("onnx_shown", sequence_id=7, **step).as_numpy("STATE_AFTER") for step in steps(client, [3, 4])
    )

    assert (first.tolist(), second.tolist()) == ([[3]], [[7]])


def test_a_state_that_is_no_output_is_not_known_to_clients(client: Driven) -> None:
    metadata = client.get_model_metadata("onnx_direct")
    (step,) = steps(client, [3])

    result = client.infer("onnx_direct", sequence_id=fresh(), **step)

    assert [each["name"] for each in metadata["inputs"]] == ["x"]
    assert [each["name"] for each in metadata["outputs"]] == ["y"]
    assert result.as_numpy("STATE_AFTER") is None

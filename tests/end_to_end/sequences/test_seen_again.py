"""Requests that a model of iterative sequences wants to see again, from every client: no client knows of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from queue import Queue
from typing import Any

import numpy as np

from ..clients.driving import Driven
from ..running import PATIENCE


def times(client: Driven, number: int) -> list[Any]:
    return [client.tensor("x", np.array([[number]], np.float32))]


def seen(result: Any) -> int:
    return int(result.as_numpy("y")[0, 0])


def test_a_request_is_answered_once_however_often_it_is_seen(client: Driven) -> None:
    assert [seen(client.infer("again", times(client, number))) for number in (1, 5, 20)] == [1, 5, 20]


def test_requests_that_are_seen_again_go_beside_each_other(make_client: Callable[..., Driven]) -> None:
    client = make_client("http.aio")

    async def together() -> list[int]:
        asked = [client.itself.infer("again", times(client, number)) for number in range(1, 30)]
        return [seen(answer) for answer in await asyncio.gather(*asked)]

    assert client.run(together()) == list(range(1, 30))


def test_a_decoupled_model_answers_each_time_that_it_sees_a_request(make_client: Callable[..., Driven]) -> None:
    client = make_client("grpc")
    came: Queue[Any] = Queue()

    client.start_stream(lambda result, error: came.put((result, error)))
    for name, number in (("a", 3), ("b", 5)):
        client.async_stream_infer("counts", times(client, number), request_id=name)
    answers: dict[str, list[int]] = {"a": [], "b": []}
    for _ in range(8):
        result, error = came.get(timeout=PATIENCE)
        assert error is None
        answers[result.get_response().id].append(seen(result))
    client.stop_stream()

    assert answers == {"a": [1, 2, 3], "b": [1, 2, 3, 4, 5]}


def test_a_client_that_leaves_is_not_worked_for_any_longer(make_client: Callable[..., Driven]) -> None:
    client = make_client("grpc.aio")

    async def some() -> list[int]:
        async def requests() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": "counts", "inputs": times(client, 10**9)}
            await asyncio.get_running_loop().create_future()

        answers = client.itself.stream_infer(requests())
        found = [seen((await anext(answers))[0]) for _ in range(3)]
        answers.cancel()
        return found

    assert client.run(some()) == [1, 2, 3]
    assert seen(client.infer("again", times(client, 2))) == 2

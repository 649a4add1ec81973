"""What a response cache does not keep, and what is refused before it is asked."""

from pathlib import Path

import numpy as np
import pytest

from naiad.backend import Answer, Reply
from naiad.errors import InternalError, InvalidArgumentError
from naiad.types import Request
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import request
from naiad_testing.metric_values import collect

from .caching import caching, values


async def test_errors_are_not_kept(backend: FakeBackend, tmp_path: Path) -> None:
    answers: list[Answer] = [[InternalError("not now")], [Reply({"OUTPUT": np.ones(1, np.float32)})]]
    backend.answer = lambda batch: answers.pop(0)

    async with caching(tmp_path, backend, FakeCache()) as server:
        with pytest.raises(InternalError, match="not now"):
            await server.infer(request("m", 1))
        good = [values(await server.infer(request("m", 1))) for _ in range(2)]

    assert good == [[1], [1]]


async def test_a_wrong_request_is_refused_before_the_cache_is_asked(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()

    async with caching(tmp_path, backend, cache) as server:
        with pytest.raises(InvalidArgumentError, match="unexpected inference output"):
            await server.infer(request("m", 1, requested=("NONE",)))

    assert "lookup" not in cache.events


async def test_a_response_that_the_cache_does_not_take_is_not_kept_and_the_log_says_so(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = FakeCache()
    cache.largest = 1000

    async with caching(tmp_path, backend, cache) as server:
        for size in (300, 100, 300):
            await server.infer(Request("m", {"INPUT": Tensor.of("INPUT", np.zeros(size, np.float32))}))

    assert "insert" not in cache.events
    assert caplog.text.count("is not kept: cache 'fake' takes up to 1000") == 1


async def test_what_a_cache_raises_is_a_miss_and_logged_once(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = FakeCache()

    async with caching(tmp_path, backend, cache) as server:
        cache.failure = RuntimeError("no room at the inn")
        answers = [values(await server.infer(request("m", 1))) for _ in range(3)]
        (counted,) = server.statistics("m")
        report = {family.name for family in collect(server)}

    assert answers == [[1]] * 3
    assert (counted.cache_hit.count, counted.cache_miss.count, counted.success.count) == (0, 3, 3)
    assert caplog.text.count("no room at the inn") == 1
    assert "naiad_cache_lookups_total" in report


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            "max_batch_size: 1 sequence_batching {}",
            "model m with sequence batching",
        ),
        (
            "model_transaction_policy { decoupled: true }",
            "model m with 'decoupled'",
        ),
    ],
)
async def test_models_whose_answers_cannot_be_kept_are_refused(
    backend: FakeBackend, tmp_path: Path, config: str, message: str
) -> None:
    async with caching(tmp_path, backend, FakeCache(), config=config) as server:
        (reason,) = server.ready().reasons

    assert message in reason
    assert "lease disable the response cache" in reason

"""A cache that answers later, on another thread: callers that leave, time that runs out, models that end meanwhile."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad.errors import DeadlineExceededError, NaiadError, QueueFullError, ShuttingDownError
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_cache.keys import LARGE
from naiad_tensors.tensors import DeferredPayload, Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import off_the_loop, request
from naiad_testing.loops import jump, turns, until
from naiad_testing.metric_values import collect

from .metered import running

CACHED = "response_cache { enable: true }"
Answer = list[float] | NaiadError


@asynccontextmanager
async def held(root: Path, backend: FakeBackend, cache: FakeCache, **options: Any) -> AsyncIterator[Server]:
    """A server of the model m whose cache has the answer to 1, and keeps its answers back."""
    backend.write(root, "m", CACHED + options.pop("config", ""))
    async with running(root, backend, cache, cache_config=("fake",), **options) as server:
        await server.infer(request("m", 1))
        cache.hold()
        yield server
        cache.release()


def ask(server: Server, *numbers: float, **fields: Any) -> tuple[Any, list[Answer]]:
    """The call of a request, and what is delivered of it."""
    delivered: list[Answer] = []

    def deliver(outcome: Outcome) -> None:
        delivered.append(outcome.outputs["OUTPUT"].array.tolist() if isinstance(outcome, Response) else outcome)

    return server.submit(request("m", *numbers, **fields), deliver), delivered


async def test_hits_and_misses_are_answered_when_the_cache_has_spoken(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache) as server:
        (_, hit), (_, miss) = ask(server, 1), ask(server, 2)
        await turns()
        before = [*hit, *miss]
        outstanding = collect(server)
        await off_the_loop(cache.release)
        await until(lambda: hit and miss)

    assert (before, hit, miss, len(backend.batches)) == ([], [[1]], [[2]], 2)
    (in_flight,) = (family.samples[0].value for family in outstanding if family.name == "naiad_requests_in_flight")
    assert in_flight == 2


async def test_nothing_is_delivered_before_submit_has_returned(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache) as server:
        cache.release()
        _, hit = ask(server, 1)
        at_once = list(hit)
        await turns()

    assert (at_once, hit) == ([], [[1]])


@pytest.mark.parametrize("number", [1, 2], ids=["hit", "miss"])
async def test_a_caller_that_leaves_while_the_cache_is_asked_hears_nothing(
    backend: FakeBackend, tmp_path: Path, number: int
) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache) as server:
        call, delivered = ask(server, number)
        call.cancel()
        cache.release()
        await turns()
        (counted,) = server.statistics("m")
        reasons = {family.name: family.samples for family in collect(server)}["nv_inference_request_failure"]

    assert (delivered, len(backend.batches)) == ([], 1)
    assert (counted.success.count, counted.fail.count) == (1, 1)
    assert [each.value for each in reasons if ("reason", "CANCELED") in each.labels] == [1]


async def test_a_caller_that_leaves_at_the_model_is_taken_back_there(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache) as server:
        backend.hold()
        call, delivered = ask(server, 2)
        cache.release()
        await off_the_loop(backend.wait_until_held)
        call.cancel()
        backend.release()
        await until(lambda: len(backend.batches) == 2)
        await turns()
        (counted,) = server.statistics("m")

    assert delivered == []
    assert backend.batches[-1].requests[0].cancelled
    assert (counted.fail.count, counted.success.count) == (1, 1)


async def test_a_hit_that_is_on_its_way_is_not_delivered_to_a_caller_that_left(
    backend: FakeBackend, tmp_path: Path
) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache) as server:
        cache.release()
        call, delivered = ask(server, 1)
        call.cancel()
        await turns()

    assert delivered == []


async def test_a_cache_that_never_answers_is_a_miss(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache) as server:
        _, delivered = ask(server, 1)
        await jump(2.1)
        await until(lambda: delivered)
        cache.release()
        await turns()

    assert delivered == [[1]]
    assert len(backend.batches) == 2
    assert "cache 'fake' has not answered for 2 s; the model is asked" in caplog.text


class SlowToRead(DeferredPayload):
    """Floats in memory of a client, which the threads that make keys cannot read until `release` is set."""

    def __init__(self, release: threading.Event) -> None:
        self._release = release

    def fetch(self) -> np.ndarray:
        if threading.current_thread().name.startswith("naiad-cache"):
            self._release.wait()
        return np.zeros(LARGE // 4, np.float32)

    @property
    def nbytes(self) -> int:
        return LARGE


async def test_keys_that_take_long_do_not_count_against_the_cache(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache, release = FakeCache(), threading.Event()
    delivered: list[Outcome] = []

    async with held(tmp_path, backend, cache) as server:
        cache.release()
        for _ in range(3):
            tensor = Tensor("INPUT", "FP32", (LARGE // 4,), SlowToRead(release))
            server.submit(Request("m", {"INPUT": tensor}), delivered.append)
        await jump(2.1)
        await until(lambda: len(delivered) == 3)
        release.set()
        _, hit = ask(server, 1)
        await until(lambda: hit)

    assert (cache.events.count("lookup"), len(backend.batches)) == (2, 4)
    assert "has not answered" not in caplog.text


async def test_a_deadline_that_passes_during_the_lookup_is_reported(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache) as server:
        _, delivered = ask(server, 1, deadline=monotonic() + 0.001)
        await off_the_loop(lambda: _wait_past(monotonic() + 0.002))
        await jump(0.01)
        (counted,) = server.statistics("m")

    (error,) = delivered
    assert isinstance(error, DeadlineExceededError)
    assert "still waited for the cache" in str(error)
    assert counted.fail.count == 1


def _wait_past(moment: float) -> None:
    while monotonic() < moment:
        pass


async def test_what_a_queue_refuses_after_a_lookup_is_delivered(backend: FakeBackend, tmp_path: Path) -> None:
    import naiad_scheduler_dynamic

    full = "max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
    backend.write(tmp_path, "m", CACHED + full)
    cache = FakeCache()

    async with running(tmp_path, backend, cache, naiad_scheduler_dynamic, cache_config=("fake",)) as server:
        backend.hold()
        cache.hold()
        answers = [ask_rows(server, number) for number in range(3)]
        cache.release()
        await until(lambda: any(answers))
        refused = [error for delivered in answers for error in delivered]
        backend.release()
        await until(lambda: all(answers))

    assert [type(error) for error in refused] in ([QueueFullError], [QueueFullError] * 2)


def ask_rows(server: Server, number: float) -> list[Outcome]:
    """What is delivered of a request with a batch dimension."""
    delivered: list[Outcome] = []
    tensor = request("m", number).inputs["INPUT"].array.reshape(1, 1)
    server.submit(Request("m", {"INPUT": type(request("m").inputs["INPUT"]).of("INPUT", tensor)}), delivered.append)
    return delivered


async def test_a_model_that_is_unloaded_answers_those_that_wait_for_the_cache(
    backend: FakeBackend, tmp_path: Path
) -> None:
    cache = FakeCache()
    explicit = {"model_control_mode": "explicit", "load_model": ("m",)}

    async with held(tmp_path, backend, cache, **explicit) as server:
        (_, hit), (_, miss) = ask(server, 1), ask(server, 2)
        await server.unload("m")
        await turns()
        cache.release()
        await until(lambda: hit and miss)

    assert (hit, miss) == ([[1]], [[2]])


async def test_a_server_that_stops_fails_those_that_wait_for_the_cache(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()

    async with held(tmp_path, backend, cache, exit_timeout_secs=0.05) as server:
        _, delivered = ask(server, 1)
        stopping = asyncio.ensure_future(server.stop())
        while not delivered:
            await jump(0.05)
        await stopping

    (error,) = delivered
    assert isinstance(error, ShuttingDownError)


async def test_with_preserve_ordering_hits_wait_for_what_came_before(backend: FakeBackend, tmp_path: Path) -> None:
    import naiad_scheduler_dynamic

    backend.write(tmp_path, "m", CACHED + "max_batch_size: 1 dynamic_batching { preserve_ordering: true }")
    cache, order = FakeCache(), []

    async with running(tmp_path, backend, cache, naiad_scheduler_dynamic, cache_config=("fake",)) as server:
        first = ask_rows(server, 1)
        await until(lambda: first)
        backend.hold()
        waiting = {name: _named(server, number, name, order) for name, number in [("a", 2), ("b", 1), ("c", 1)]}
        await off_the_loop(backend.wait_until_held)
        await turns()
        before = list(order)
        waiting["b"].cancel()
        backend.release()
        await until(lambda: len(order) == 2)

    assert (before, order) == ([], ["a", "c"])


async def test_with_preserve_ordering_a_receiver_that_raises_holds_up_no_other(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import naiad_scheduler_dynamic

    backend.write(tmp_path, "m", CACHED + "max_batch_size: 1 dynamic_batching { preserve_ordering: true }")
    order: list[str] = []

    def fail(_outcome: Outcome) -> None:
        raise ValueError("the receiver is broken")

    async with running(tmp_path, backend, FakeCache(), naiad_scheduler_dynamic, cache_config=("fake",)) as server:
        first = ask_rows(server, 1)
        await until(lambda: first)
        backend.hold()
        server.submit(_one("m", 2), fail)
        _named(server, 1, "b", order)  # a hit, which waits for the one before
        await off_the_loop(backend.wait_until_held)
        backend.release()
        await until(lambda: order)

    assert order == ["b"]
    assert "the receiver is broken" in caplog.text


def _one(model: str, number: float) -> Request:
    tensor = type(request("m").inputs["INPUT"]).of("INPUT", request("m", number).inputs["INPUT"].array.reshape(1, 1))
    return Request(model, {"INPUT": tensor})


def _named(server: Server, number: float, name: str, order: list[str]) -> Any:
    return server.submit(_one("m", number), lambda outcome: order.append(name))

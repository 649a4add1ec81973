"""The statistics of a running server: requests, executions, times, memory."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from time import time_ns
from typing import Any

import pytest

from naiad import Server
from naiad.backend import Answer, Batch, MemoryUsage, ModelContext, Reply
from naiad.errors import InvalidArgumentError, ModelFailedError, ModelNotReadyError, NotFoundError
from naiad_statistics.reports import Duration, ModelStatistics
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, rows, running, write_model
from naiad_testing.loops import turns, until
from naiad_testing.steered import Steered, SteeredModel

NOTHING = Duration()


MS = 1_000_000


def of(server: Server, name: str = "m") -> ModelStatistics:
    (statistics,) = server.statistics(name)
    return statistics


async def test_a_served_request_is_counted_everywhere(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "max_batch_size: 8")
    before = time_ns() // MS

    async with running(tmp_path, backend) as server:
        await server.infer(rows("m", 1, 2, 3))
        await server.infer(rows("m", 1))
        statistics = of(server)

    assert (statistics.name, statistics.version) == ("m", 1)
    assert (statistics.inference_count, statistics.execution_count) == (4, 2)
    assert before <= statistics.last_inference <= time_ns() // MS
    counted = (statistics.success, statistics.queue, statistics.compute_input, statistics.compute_infer)
    assert {each.count for each in (*counted, statistics.compute_output)} == {2}
    assert statistics.fail == NOTHING
    parts = (statistics.queue, statistics.compute_input, statistics.compute_infer, statistics.compute_output)
    assert 0 < sum(each.ns for each in parts) <= statistics.success.ns
    assert [each.batch_size for each in statistics.batch_stats] == [1, 3]
    assert statistics.batch_reasons == {"single": 2}
    assert (statistics.cache_hit, statistics.cache_miss) == (NOTHING, NOTHING)


async def test_a_backend_marks_where_its_own_time_begins_and_ends(tmp_path: Path) -> None:
    def answer(batch: Batch) -> Answer:
        tensor = batch.input("INPUT")
        batch.mark_input_done()
        batch.mark_infer_done()
        return {"OUTPUT": tensor}

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        statistics = of(server)

    assert statistics.compute_input.ns > 0
    assert statistics.compute_infer.ns >= 0
    assert statistics.compute_output.ns > 0


async def test_failures_are_counted_and_are_no_executions(tmp_path: Path) -> None:
    def answer(batch: Batch) -> Answer:
        raise ValueError("no")

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        with pytest.raises(ModelFailedError):
            await server.infer(request("m", 1))
        statistics = of(server)

    assert (statistics.fail.count, statistics.success.count, statistics.execution_count) == (1, 0, 0)
    assert statistics.fail.ns > 0
    assert statistics.last_inference == 0


async def test_some_requests_of_a_batch_may_fail_and_others_succeed(tmp_path: Path) -> None:
    def answer(batch: Batch) -> Sequence[Reply | InvalidArgumentError]:
        return [Reply({}), InvalidArgumentError("no")][: len(batch.requests)]

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        backend.answer = lambda batch: [InvalidArgumentError("no")]
        with pytest.raises(InvalidArgumentError):
            await server.infer(request("m", 1))
        statistics = of(server)

    assert (statistics.success.count, statistics.fail.count, statistics.execution_count) == (1, 1, 2)


async def test_requests_taken_back_count_as_failures_once(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", number))) for number in range(3)]
        await off_the_loop(backend.wait_until_held)
        for call in calls:
            call.cancel()
        await turns()
        backend.release()
        await until(lambda: of(server).execution_count == 1)
        statistics = of(server)

    assert (statistics.fail.count, statistics.success.count, statistics.inference_count) == (3, 0, 0)


async def test_statistics_are_reported_for_all_models_one_or_one_version(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "b", "version_policy { all { } }", versions=(1, 10, 2))
    backend.write(tmp_path, "a")

    async with running(tmp_path, backend) as server:

        def versions(name: str = "", version: int = 0) -> list[tuple[str, int]]:
            return [(each.name, each.version) for each in server.statistics(name, version)]

        assert versions() == [("a", 1), ("b", 1), ("b", 2), ("b", 10)]
        assert versions("b") == [("b", 1), ("b", 2), ("b", 10)]
        assert versions("b", 2) == [("b", 2)]


async def test_statistics_of_what_does_not_serve_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()

    async with running(tmp_path) as server:
        assert server.statistics() == []
        with pytest.raises(NotFoundError):
            server.statistics("ghost")
        with pytest.raises(ModelNotReadyError):
            server.statistics("broken")


async def test_a_new_generation_counts_from_zero(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend, model_control_mode="explicit", load_model=("m",)) as server:
        await server.infer(request("m", 1))
        backend.write(tmp_path, "m", "max_batch_size: 4")
        await server.load("m")

        assert of(server).success == NOTHING


class Heavy(SteeredModel):
    """A model that tells how much memory it holds."""

    def __init__(self, backend: Steered, usage: Any) -> None:
        super().__init__(backend)
        self._usage = usage

    def memory_usage(self) -> Sequence[MemoryUsage]:
        if isinstance(self._usage, Exception):
            raise self._usage
        return [self._usage]


def heavy(root: Path, usage: Any) -> Steered:
    def load(context: ModelContext) -> Heavy:
        return Heavy(backend, usage)

    backend = Steered(load=load)
    write_model(root, "m")
    return backend


async def test_a_model_tells_its_memory(tmp_path: Path) -> None:
    usage = MemoryUsage("GPU", 1, 2**30)

    async with running(tmp_path, heavy(tmp_path, usage)) as server:
        assert of(server).memory_usage == (usage,)


async def test_a_model_that_cannot_report_its_memory_hides_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, heavy(tmp_path, RuntimeError("no scales"))) as server:
        await server.infer(request("m", 1))
        statistics = of(server)

    assert (statistics.memory_usage, statistics.success.count) == ((), 1)
    assert "no scales" in caplog.text

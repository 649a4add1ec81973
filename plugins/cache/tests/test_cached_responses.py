"""A response cache before a model: what is answered from it, what is kept, and what is counted."""

from pathlib import Path

import numpy as np
import pytest

from naiad.backend import Answer, Batch, Reply
from naiad.types import Request
from naiad_cache import writing
from naiad_statistics.reports import Duration
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import request
from naiad_testing.loops import until

from .caching import CACHED, caching, values
from .serving import running


async def test_an_equal_request_is_answered_without_the_model(backend: FakeBackend, tmp_path: Path) -> None:
    async with caching(tmp_path, backend, FakeCache()) as server:
        first = await server.infer(request("m", 1, 2, id="first"))
        second = await server.infer(request("m", 1, 2, id="second"))

    assert (values(first), values(second)) == ([1, 2], [1, 2])
    assert (second.id, second.model_name, second.version, second.final) == ("second", "m", 1, True)
    assert len(backend.batches) == 1


async def test_a_request_that_differs_is_executed(backend: FakeBackend, tmp_path: Path) -> None:
    async with caching(tmp_path, backend, FakeCache()) as server:
        answers = [values(await server.infer(request("m", *each))) for each in ([1, 2], [2, 1], [1], [])]

    assert answers == [[1, 2], [2, 1], [1], []]
    assert len(backend.batches) == 4


async def test_only_the_outputs_that_are_asked_for_are_kept(backend: FakeBackend, tmp_path: Path) -> None:
    two = """
        input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
        output [ { name: "A" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "B" data_type: TYPE_FP32 dims: [ -1 ] } ]
    """
    backend.answer = lambda batch: {"A": batch.input("INPUT"), "B": batch.input("INPUT")}

    async with caching(tmp_path, backend, FakeCache(), config=two) as server:
        answers = [await server.infer(request("m", 1, requested=name)) for name in [("A",), ("B",), (), ("A",)]]

    assert [list(answer.outputs) for answer in answers] == [["A"], ["B"], ["A", "B"], ["A"]]
    assert len(backend.batches) == 3


async def test_a_hit_is_a_success_and_no_inference(backend: FakeBackend, tmp_path: Path) -> None:
    async with caching(tmp_path, backend, FakeCache()) as server:
        for _ in range(3):
            await server.infer(request("m", 1))
        (counted,) = server.statistics("m")

    assert (counted.success.count, counted.queue.count, counted.fail.count) == (3, 3, 0)
    assert (counted.inference_count, counted.execution_count) == (1, 1)
    assert (counted.compute_input.count, counted.compute_infer.count, counted.compute_output.count) == (1, 1, 1)
    assert (counted.cache_hit.count, counted.cache_miss.count) == (2, 1)
    assert counted.cache_hit.ns > 0
    assert counted.cache_miss.ns > 0
    assert counted.success.ns >= counted.cache_hit.ns


async def test_a_model_that_does_not_ask_for_the_cache_does_not_notice_it(backend: FakeBackend, tmp_path: Path) -> None:
    cache = FakeCache()
    backend.write(tmp_path, "n", "response_cache { enable: false }")

    async with caching(tmp_path, backend, cache) as server:
        for _ in range(2):
            await server.infer(request("n", 1))
        (counted,) = server.statistics("n")

    assert (counted.execution_count, counted.cache_hit, counted.cache_miss) == (2, Duration(), Duration())
    assert "lookup" not in cache.events


async def test_a_model_that_asks_for_a_cache_is_served_without_one_and_the_log_says_so(
    backend: FakeBackend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend.write(tmp_path, "m", CACHED)

    async with running(tmp_path, backend) as server:
        answer = await server.infer(request("m", 1))

    assert values(answer) == [1]
    assert "model 'm' asks for a response cache and the server has none; start it with --cache-config" in caplog.text


async def test_what_is_kept_is_memory_of_its_own(backend: FakeBackend, tmp_path: Path) -> None:
    memory = np.array([1, 2], dtype=np.float32)
    backend.answer = lambda batch: {"OUTPUT": memory}

    async with caching(tmp_path, backend, FakeCache()) as server:
        first = await server.infer(request("m", 5))
        first.outputs["OUTPUT"].array[0] = 99
        memory[1] = 99
        second = await server.infer(request("m", 5))
        second.outputs.clear()  # type: ignore[attr-defined]
        third = await server.infer(request("m", 5))

    assert values(third) == [1, 2]
    assert not third.outputs["OUTPUT"].array.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        third.outputs["OUTPUT"].array.flags.writeable = True


async def test_parameters_of_an_answer_are_kept_with_it(backend: FakeBackend, tmp_path: Path) -> None:
    def answer(batch: Batch) -> Answer:
        return [Reply({"OUTPUT": each.inputs["INPUT"].array}, {"score": 0.5}) for each in batch.requests]

    backend.answer = answer

    async with caching(tmp_path, backend, FakeCache()) as server:
        answers = [await server.infer(request("m", 1)) for _ in range(2)]

    assert [dict(each.parameters) for each in answers] == [{"score": 0.5}] * 2
    assert len(backend.batches) == 1


async def test_a_model_that_is_loaded_anew_gives_no_earlier_answer(backend: FakeBackend, tmp_path: Path) -> None:
    async with caching(tmp_path, backend, FakeCache(), model_control_mode="explicit", load_model=("m",)) as server:
        before = await server.infer(request("m", 1))
        backend.answer = lambda batch: {"OUTPUT": batch.input("INPUT") + 1}
        await server.load("m")
        await server.unload("m")
        await server.load("m")
        after = await server.infer(request("m", 1))

    assert (values(before), values(after)) == ([1], [2])


@pytest.mark.parametrize(("changed", "executions"), [("", 1), ("max_batch_size: 0 version_policy { all {} }", 2)])
async def test_servers_that_share_a_cache_find_each_others_answers_while_they_serve_the_same(
    backend: FakeBackend, tmp_path: Path, changed: str, executions: int
) -> None:
    cache = FakeCache()
    cache.shared = True
    async with caching(tmp_path, backend, cache) as server:
        await server.infer(request("m", 1))
        kept = dict(cache.entries)

    async with caching(tmp_path, backend, cache, config=changed) as server:
        cache.entries.update(kept)
        await server.infer(request("m", 1))

    assert len(backend.batches) == executions


async def test_a_model_whose_files_have_changed_finds_nothing_in_a_shared_cache(
    backend: FakeBackend, tmp_path: Path
) -> None:
    cache = FakeCache()
    cache.shared = True
    options = {"model_control_mode": "explicit", "load_model": ("m",)}

    async with caching(tmp_path, backend, cache, **options) as server:
        await server.infer(request("m", 1))
        await server.load("m", "")
        (tmp_path / "m" / "1" / "weights").write_bytes(b"new")
        await server.load("m")
        await server.infer(request("m", 1))

    assert len(backend.batches) == 2


@pytest.mark.parametrize(
    "tensor",
    [Tensor.of("INPUT", np.zeros(200_000, np.float32)), Tensor.of("INPUT", np.arange(70_000, dtype=np.float32))],
    ids=["800 KB", "280 KB"],
)
async def test_large_tensors_are_looked_up_and_kept_off_the_event_loop(
    backend: FakeBackend, tmp_path: Path, tensor: Tensor
) -> None:
    cache = FakeCache()

    async with caching(tmp_path, backend, cache) as server:
        first = await server.infer(Request("m", {"INPUT": tensor}, id="1"))
        writeable = first.outputs["OUTPUT"].array.flags.writeable
        await until(lambda: cache.entries)
        second = await server.infer(Request("m", {"INPUT": tensor}, id="2"))

    assert len(backend.batches) == 1
    assert not writeable
    np.testing.assert_array_equal(second.outputs["OUTPUT"].array, tensor.array)
    assert second.id == "2"


async def test_of_answers_that_are_not_asked_for_again_fewer_are_kept_until_one_is_found(
    backend: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PATIENT_FOR", 20)
    cache = FakeCache()

    async with caching(tmp_path, backend, cache) as server:
        for number in range(100):
            await server.infer(request("m", number))
        kept_of_a_hundred = len(cache.entries)
        await server.infer(request("m", 0))
        for number in range(100, 110):
            await server.infer(request("m", number))
        kept_in_the_end = len(cache.entries)

    assert kept_of_a_hundred == 20 + 80 // 8
    assert kept_in_the_end == kept_of_a_hundred + 10

"""The response cache in traces, explanations and metrics."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naiad_explain
from naiad import Server
from naiad.types import Request
from naiad_kit.caches import CacheReport
from naiad_kit.metrics import Distribution, Quantiles
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import request
from naiad_testing.loops import until
from naiad_testing.metric_values import ONE, values_of
from naiad_testing.tracing import FakeTrace

from .metered import running

SUMMARIES = {"metrics_config": ((("summary_latencies", True),),), "allow_cpu_metrics": False}


class Reporting(FakeCache):
    """Says that of itself."""

    def __init__(self, report: CacheReport) -> None:
        super().__init__()
        self._report = report

    def report(self) -> CacheReport:
        return self._report


@asynccontextmanager
async def caching(
    root: Path, backend: FakeBackend, cache: FakeCache, *plugins: object, **options: Any
) -> AsyncIterator[Server]:
    backend.write(root, "m", "response_cache { enable: true }")
    async with running(root, backend, cache, *plugins, cache_config=("fake",), **options) as server:
        yield server


async def test_a_trace_says_how_the_lookup_went(backend: FakeBackend, tmp_path: Path) -> None:
    traces = [FakeTrace(), FakeTrace()]

    async with caching(tmp_path, backend, FakeCache()) as server:
        for trace in traces:
            await server.infer(request("m", 1, trace=trace))

    miss, hit = traces
    assert miss.events[:4] == ["REQUEST_START", "QUEUE_START", "CACHE_MISS_LOOKUP_START", "CACHE_MISS_LOOKUP_END"]
    assert "COMPUTE_START" in miss.events
    assert hit.events == [
        "REQUEST_START",
        "QUEUE_START",
        "CACHE_HIT_LOOKUP_START",
        "CACHE_HIT_LOOKUP_END",
        "INFER_RESPONSE_COMPLETE",
        "REQUEST_END",
    ]
    assert hit.shapes == miss.shapes == {"TENSOR_QUEUE_INPUT": [(1,)], "TENSOR_BACKEND_OUTPUT": [(1,)]}
    assert hit.times["CACHE_HIT_LOOKUP_START"] <= hit.times["CACHE_HIT_LOOKUP_END"]


@pytest.mark.parametrize("values", [1, 100_000], ids=["small", "large"])
async def test_an_explanation_is_of_its_own_request_and_is_not_kept(
    backend: FakeBackend, tmp_path: Path, values: int
) -> None:
    cache = FakeCache()
    tensor = Tensor.of("INPUT", np.zeros(values, np.float32))

    async with caching(tmp_path, backend, cache, naiad_explain, allow_explain=True) as server:
        first = await server.infer(Request("m", {"INPUT": tensor}, parameters={"naiad_explain": True}))
        await until(lambda: cache.entries)
        second = await server.infer(Request("m", {"INPUT": tensor}))
        third = await server.infer(Request("m", {"INPUT": tensor}, parameters={"naiad_explain": True}))

    assert len(backend.batches) == 1
    assert dict(second.parameters) == {}
    explanations = [json.loads(str(each.parameters["naiad_explain"])) for each in (first, third)]
    assert explanations[0] != explanations[1]


async def test_metrics_count_hits_and_misses_of_each_model_and_what_the_cache_holds(
    backend: FakeBackend, tmp_path: Path
) -> None:
    backend.write(tmp_path, "plain")

    async with caching(tmp_path, backend, FakeCache()) as server:
        for number in (1, 1, 2, 1):
            await server.infer(request("m", number))
        await server.infer(request("plain", 1))
        values = values_of(server)
        (counted,) = server.statistics("m")

    (lookups,) = values["naiad_cache_lookups_total"]
    assert lookups == {("cache", "fake")}
    assert values["nv_cache_num_hits_per_model"] == {ONE: 2}
    assert values["nv_cache_num_misses_per_model"] == {ONE: 2}
    assert values["nv_cache_hit_duration_per_model"] == {ONE: counted.cache_hit.ns // 1000}
    assert values["nv_cache_miss_duration_per_model"] == {ONE: counted.cache_miss.ns // 1000}
    (lookup,), (insertion,) = (values[f"nv_cache_{name}_duration"].values() for name in ("lookup", "insertion"))
    assert min(lookup, insertion) > 0
    assert lookup + insertion == pytest.approx((counted.cache_hit.ns + counted.cache_miss.ns) // 1000, abs=1)
    assert values["naiad_cache_lookups_total"] == {lookups: 4}
    assert values["naiad_cache_hits_total"] == {lookups: 2}
    assert values["naiad_cache_entries"] == {lookups: 2}
    assert "naiad_cache_capacity_bytes" not in values
    assert "nv_cache_hit_summary_per_model" not in values


@pytest.mark.parametrize(("held", "full"), [((10, 40), 0.25), ((0, 40), 0.0), ((10, 0), None), ((None, None), None)])
async def test_the_servers_cache_is_reported_as_triton_tells_its_own(
    backend: FakeBackend, tmp_path: Path, held: tuple[int | None, int | None], full: float | None
) -> None:
    byte_size, capacity = held
    report = CacheReport(5, hits=3, evictions=1, entries=2, byte_size=byte_size, capacity=capacity)

    async with caching(tmp_path, backend, Reporting(report)) as server:
        values = values_of(server)

    whole = {name: list(each.values()) for name, each in values.items() if each.keys() == {frozenset()}}
    assert {name: value for name, (value,) in whole.items() if name.startswith("nv_cache")} == {
        "nv_cache_num_lookups": 5,
        "nv_cache_num_hits": 3,
        "nv_cache_num_misses": 2,
        "nv_cache_num_evictions": 1,
        "nv_cache_num_entries": 2,
        "nv_cache_lookup_duration": 0,
        "nv_cache_insertion_duration": 0,
    } | ({} if full is None else {"nv_cache_util": full})


async def test_hits_are_in_the_distribution_of_requests_and_in_no_phase_of_an_execution(
    backend: FakeBackend, tmp_path: Path
) -> None:
    async with caching(tmp_path, backend, FakeCache(), **SUMMARIES) as server:
        for _ in range(3):
            await server.infer(request("m", 1))
        values = values_of(server)

    def count(name: str) -> int:
        value = values[name][ONE]
        assert isinstance(value, Distribution | Quantiles)
        return sum(value.counts) if isinstance(value, Distribution) else value.count

    assert count("naiad_request_duration_seconds") == count("nv_inference_request_summary_us") == 3
    assert count("naiad_queue_duration_seconds") == count("nv_inference_queue_summary_us") == 3
    assert count("naiad_compute_infer_duration_seconds") == count("nv_inference_compute_infer_summary_us") == 1
    assert count("nv_cache_hit_summary_per_model") == 2
    assert count("nv_cache_miss_summary_per_model") == 1


async def test_without_a_cache_nothing_is_reported_one(backend: FakeBackend, tmp_path: Path) -> None:
    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        values = values_of(server)

    assert [name for name in values if "cache" in name] == []

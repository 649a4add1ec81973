"""The metrics of the machine and of its GPUs, and what models execute on which of them."""

import asyncio
import threading
from pathlib import Path

import pytest

from naiad._kernel.metrics.collector import Metrics
from naiad._kernel.metrics.families import GPU
from naiad._kernel.metrics.nvml import GpuReading
from naiad._kernel.metrics.options import MetricsConfig
from naiad._kernel.metrics.series import MetricStore
from naiad_testing.backends import FakeBackend

from .loops import jump
from .serving import Steered, request, running, write_model
from .telling_metrics import ONE, Told, told, with_reason


async def test_the_machine_is_told_unless_that_is_switched_off(tmp_path: Path, backend: FakeBackend) -> None:
    cpu = {"nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes"}
    always = {"nv_pinned_memory_pool_total_bytes", "nv_pinned_memory_pool_used_bytes", "naiad_process_memory_bytes"}

    async with running(tmp_path, backend) as server:
        on = told(server)
    async with running(tmp_path, backend, allow_cpu_metrics=False) as server:
        off = told(server)

    assert cpu | always <= set(on)
    assert set(on) - set(off) == cpu
    assert all(list(on[name]) == [frozenset()] for name in cpu)


def gpus(metrics: Metrics) -> Told:
    names = {family.name for family in GPU}
    return {
        family.name: {frozenset(each.labels): each.value for each in family.samples}
        for family in metrics.collect()
        if family.name in names
    }


async def test_gpus_are_told_as_of_the_last_look_at_them() -> None:
    looks: list[int] = []

    def look() -> tuple[GpuReading, ...]:
        looks.append(1)
        return (GpuReading("GPU-1", utilization=0.5, energy=12.5), GpuReading("GPU-2", utilization=0.0))

    metrics = Metrics(MetricsConfig(), list, MetricStore(), look)

    nothing = gpus(metrics)
    await metrics.scrape()
    await metrics.scrape()

    one, other = frozenset({("gpu_uuid", "GPU-1")}), frozenset({("gpu_uuid", "GPU-2")})
    assert nothing == {}
    assert gpus(metrics) == {"nv_gpu_utilization": {one: 0.5, other: 0.0}, "nv_energy_consumption": {one: 12.5}}
    assert len(looks) == 1


async def test_a_driver_that_hangs_costs_one_thread_and_stops_no_scrape() -> None:
    looks: list[int] = []
    release = threading.Event()

    def hang() -> tuple[GpuReading, ...]:
        looks.append(1)
        release.wait(10)
        return (GpuReading("GPU-1", utilization=0.5),)

    metrics = Metrics(MetricsConfig(interval=0.0), list, MetricStore(), hang)

    for _ in range(3):
        scrape = asyncio.ensure_future(metrics.scrape())
        await jump(1.1)
        assert await scrape
    assert (gpus(metrics), len(looks)) == ({}, 1)

    release.set()
    await metrics.scrape()
    assert gpus(metrics)["nv_gpu_utilization"] == {frozenset({("gpu_uuid", "GPU-1")}): 0.5}


@pytest.mark.parametrize("config", [MetricsConfig(gpu=False), MetricsConfig(enabled=False)])
async def test_gpus_are_not_looked_at_when_that_is_switched_off(config: MetricsConfig) -> None:
    metrics = Metrics(config, list, MetricStore(), lambda: pytest.fail("it looked"))

    await metrics.scrape()

    assert gpus(metrics) == {}


async def test_what_is_executed_on_a_gpu_is_told_by_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("loading", "metrics.versions"):
        monkeypatch.setattr(f"naiad._kernel.{module}.gpu_uuids", lambda: ("GPU-a", "GPU-b"))
    monkeypatch.setattr("naiad._kernel.loading.gpu_count", lambda: 2)
    backend = Steered()
    write_model(tmp_path, "m", FLOATS_ON_GPUS)

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        metrics = told(server)

    on = {uuid: ONE | {("gpu_uuid", uuid)} for uuid in ("GPU-a", "GPU-b")}
    counts = metrics["nv_inference_count"]
    assert (set(counts), sum(counts.values())) == (set(on.values()), 1)
    assert set(metrics["naiad_request_duration_seconds"]) == set(on.values())
    assert set(metrics["nv_inference_pending_request_count"]) == {ONE}
    instances = [dict(labels) for labels in metrics["naiad_instance_busy_seconds"]]
    assert [(labels["instance"], labels["gpu"]) for labels in instances] == [("m_0_0", "0"), ("m_0_0", "1")]
    assert with_reason("OTHER") in metrics["nv_inference_request_failure"]


FLOATS_ON_GPUS = """
input [ { name: "INPUT", data_type: TYPE_FP32, dims: [ -1 ] } ]
output [ { name: "OUTPUT", data_type: TYPE_FP32, dims: [ -1 ] } ]
instance_group [ { kind: KIND_GPU, gpus: [ 0, 1 ] } ]
"""

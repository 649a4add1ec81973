"""The metrics service over a server without models: the machine, its GPUs, and which families there are."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from naiad_config import ModelConfig
from naiad_kit.metrics import MetricFamily
from naiad_metrics.config import MetricsConfig
from naiad_metrics.families import FAMILIES, GPU
from naiad_metrics.nvml import GpuReading
from naiad_metrics.service import MetricsService

ReadValues = dict[str, dict[frozenset[tuple[str, str]], Any]]


async def started(config: MetricsConfig, look: Callable[[], tuple[GpuReading, ...]] = tuple) -> MetricsService:
    """The service of a server that serves nothing."""
    metrics = MetricsService(config, look)
    server: Any = SimpleNamespace(version_reports=lambda: iter(()), contributors=lambda: iter(()))
    await metrics.start(server)
    return metrics


def gpus(metrics: MetricsService) -> ReadValues:
    names = {family.name for family in GPU}
    return {
        family.name: {frozenset(each.labels): each.value for each in family.samples}
        for family in metrics.collect()
        if family.name in names
    }


async def test_gpus_are_reported_as_of_the_last_look_at_them() -> None:
    looks: list[int] = []

    def look() -> tuple[GpuReading, ...]:
        looks.append(1)
        return (GpuReading("GPU-1", utilization=0.5, energy=12.5), GpuReading("GPU-2", utilization=0.0))

    metrics = await started(MetricsConfig(), look)

    nothing = gpus(metrics)
    await metrics.scrape()
    await metrics.scrape()

    one, other = frozenset({("gpu_uuid", "GPU-1")}), frozenset({("gpu_uuid", "GPU-2")})
    assert nothing == {}
    assert gpus(metrics) == {"nv_gpu_utilization": {one: 0.5, other: 0.0}, "nv_energy_consumption": {one: 12.5}}
    assert len(looks) == 1


async def test_a_driver_that_hangs_costs_one_thread_and_stops_no_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("naiad_metrics.service._GPU_SECONDS", 0.01)
    looks: list[int] = []
    release = threading.Event()

    def hang() -> tuple[GpuReading, ...]:
        looks.append(1)
        release.wait(10)
        return (GpuReading("GPU-1", utilization=0.5),)

    metrics = await started(MetricsConfig(interval=0.0), hang)

    for _ in range(3):
        assert await metrics.scrape()
    assert (gpus(metrics), len(looks)) == ({}, 1)

    monkeypatch.setattr("naiad_metrics.service._GPU_SECONDS", 10.0)
    release.set()
    await metrics.scrape()
    assert gpus(metrics)["nv_gpu_utilization"] == {frozenset({("gpu_uuid", "GPU-1")}): 0.5}


async def test_a_reading_that_took_longer_than_its_scrape_counts_at_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("naiad_metrics.service._GPU_SECONDS", 0.0)
    began, release, reading = threading.Event(), threading.Event(), []

    def look() -> tuple[GpuReading, ...]:
        reading.append(threading.current_thread())
        began.set()
        release.wait(10)
        return (GpuReading("GPU-1", utilization=0.5),)

    metrics = await started(MetricsConfig(interval=0.0), look)
    await metrics.scrape()
    await asyncio.to_thread(began.wait, 10)
    release.set()
    await asyncio.to_thread(reading[0].join)

    await metrics.scrape()

    assert gpus(metrics)["nv_gpu_utilization"] == {frozenset({("gpu_uuid", "GPU-1")}): 0.5}


async def test_a_driver_that_fails_costs_only_the_metrics_of_gpus(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> tuple[GpuReading, ...]:
        raise RuntimeError("no room for a thread")

    metrics = await started(MetricsConfig(), fail)

    families = await metrics.scrape()

    assert families
    assert gpus(metrics) == {}
    assert caplog.messages == ["the GPUs cannot be read, and have no metrics: no room for a thread"]


@pytest.mark.parametrize("config", [MetricsConfig(gpu=False), MetricsConfig(enabled=False)])
async def test_gpus_are_not_looked_at_when_that_is_switched_off(config: MetricsConfig) -> None:
    metrics = await started(config, lambda: pytest.fail("it looked"))

    await metrics.scrape()

    assert gpus(metrics) == {}


def test_every_family_has_a_name_of_its_own_a_help_and_a_unit_where_it_needs_one() -> None:
    names = [family.name for family in FAMILIES]

    assert len(set(names)) == len(names)
    assert all(family.help and not family.help.endswith(".") for family in FAMILIES)
    assert all(family.name.startswith(("nv_", "naiad_")) for family in FAMILIES)


async def test_a_family_without_samples_is_not_reported() -> None:
    metrics = await started(MetricsConfig())

    collected: list[MetricFamily] = metrics.collect()

    assert all(family.samples for family in collected)
    assert "nv_inference_count" not in {family.name for family in collected}


def test_the_metrics_of_models_are_collected_without_a_look_at_the_models() -> None:
    metrics = MetricsService(MetricsConfig())
    metrics.part_of(ModelConfig()).family("blocks", "Blocks of the cache", "gauge").metric({"model": "m"})

    families = metrics.collect_made_by_models()

    assert [each.name for each in families] == ["blocks"]

"""The metrics service: collects the metrics of a server, and observes latencies for it."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from naiad.threads import on_own_thread
from naiad_config import ModelConfig
from naiad_kit.metrics import MetricFamily, metrics_of_plugins
from naiad_kit.model_metrics import MetricRegistry, MetricStore, line_names
from naiad_metrics import families
from naiad_metrics.collection import Collection
from naiad_metrics.config import MetricsConfig
from naiad_metrics.machine import Machine
from naiad_metrics.nvml import GpuReading, gpu_uuids, read_gpus
from naiad_metrics.observers import LatencyObserver, family_problems, latency_plan
from naiad_metrics.versions import add_version

if TYPE_CHECKING:
    from naiad.server import ServerApi

_logger = logging.getLogger("naiad")

TURN = 0.001
"""Seconds for which metrics are collected at a time."""

_GPU_SECONDS = 1.0


class MetricsService:
    """A `naiad_kit.metrics.MetricsApi`. Nothing is collected before the server has started it."""

    name = "metrics"

    def __init__(self, config: MetricsConfig, read_gpus: Callable[[], tuple[GpuReading, ...]] = read_gpus) -> None:
        self._config = config
        self._store = MetricStore(families.RESERVED)
        self._server: ServerApi | None = None
        self._machine = Machine(config.interval)
        self._read_gpus = read_gpus
        self._gpus: tuple[GpuReading, ...] = ()
        self._gpus_read_at: float | None = None
        self._gpu_reading: asyncio.Future[tuple[GpuReading, ...]] | None = None

    async def start(self, server: "ServerApi") -> None:
        """Collect the metrics of that server from now on."""
        self._server = server
        self._store.reserve([line for each in metrics_of_plugins(server) for line in line_names(each.name, each.kind)])
        await on_own_thread("naiad-gpus", gpu_uuids)  # asking the driver takes a while, and `collect` must not wait

    async def stop(self, seconds: float) -> None:
        """Nothing to write."""

    def part_of(self, config: ModelConfig) -> MetricRegistry:
        """A registry that shares its families with those of all models of the server."""
        return MetricRegistry(self._store)

    def observer(self, config: ModelConfig) -> LatencyObserver | None:
        """What observes the latencies of a version with that configuration, None with `--allow-metrics=false`."""
        plan = latency_plan(config, self._config)
        return None if plan is None else LatencyObserver(plan)

    def problems(self, config: ModelConfig) -> list[str]:
        """What in `model_metrics` has no effect."""
        return family_problems(config)

    def collect(self) -> list[MetricFamily]:
        """Every metric as it stands, those of the GPUs as of the last `scrape`; none with `--allow-metrics=false`."""
        server = self._server
        if server is None or not self._config.enabled:
            return []
        collection = Collection()
        for version in server.version_reports():
            add_version(collection, version, self._config)
        return self._with_everything_else(server, collection)

    def collect_made_by_models(self) -> list[MetricFamily]:
        """The metrics that models make for themselves, which cost nothing where there are none."""
        if not self._config.enabled:
            return []
        with self._store.lock:
            return self._store.collect()

    async def scrape(self) -> list[MetricFamily]:
        """Every metric, with the GPUs as they are now, in turns with the other work of the event loop.

        Each version is reported as it stands at one moment, all of them within milliseconds.
        """
        server = self._server
        if server is None or not self._config.enabled:
            return []
        await self._look_at_gpus()
        collection, until = Collection(), monotonic() + TURN
        for version in server.version_reports():
            add_version(collection, version, self._config)
            if monotonic() > until:
                await asyncio.sleep(0)
                until = monotonic() + TURN
        return self._with_everything_else(server, collection)

    def _with_everything_else(self, server: "ServerApi", collection: Collection) -> list[MetricFamily]:
        self._add_machine(collection)
        for gpu in self._gpus:
            values = (
                gpu.utilization,
                gpu.memory_total,
                gpu.memory_used,
                gpu.power_usage,
                gpu.power_limit,
                gpu.energy,
            )
            collection.add_all(families.GPU, (("gpu_uuid", gpu.uuid),), values)
        of_plugins = [family for family in metrics_of_plugins(server) if family.samples]
        with self._store.lock:
            return collection.families() + of_plugins + self._store.collect()

    async def _look_at_gpus(self) -> None:
        """Read the GPUs on a thread, as the driver takes a while, at most once in `--metrics-interval-ms`.

        A driver that hangs costs one thread, and a collection waits for it a second; the last values count meanwhile.
        """
        now, last = monotonic(), self._gpus_read_at
        if not self._config.gpu or (last is not None and now - last < self._config.interval):
            return
        self._gpus_read_at = now
        reading = self._gpu_reading
        if reading is not None and reading.done():  # after the scrape that began it
            self._keep(reading)
            reading = None
        if reading is None:
            reading = self._gpu_reading = asyncio.ensure_future(on_own_thread("naiad-gpus", self._read_gpus))
        await asyncio.wait((reading,), timeout=_GPU_SECONDS)
        if reading.done():
            self._keep(reading)

    def _keep(self, reading: "asyncio.Future[tuple[GpuReading, ...]]") -> None:
        self._gpu_reading = None
        try:
            self._gpus = reading.result()
        except Exception as error:  # noqa: BLE001 - no failure of a driver may cost the other metrics
            self._gpus = ()
            _logger.warning("the GPUs cannot be read, and have no metrics: %s", error)

    def _add_machine(self, collection: Collection) -> None:
        reading = self._machine.reading(monotonic())
        if self._config.cpu:
            collection.add_all(families.CPU, (), (reading.utilization, reading.total, reading.used))
        collection.add(families.PROCESS_MEMORY, (("process", "server"),), reading.resident)
        collection.add_all(families.PINNED_MEMORY, (), (0, 0))

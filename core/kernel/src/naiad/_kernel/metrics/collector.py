"""`Server.metrics`: everything that is told of a server at one moment."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING

from naiad._kernel.metrics import families
from naiad._kernel.metrics.caches import add_cache
from naiad._kernel.metrics.collecting import Collection
from naiad._kernel.metrics.machine import Machine
from naiad._kernel.metrics.nvml import GpuReading, read_gpus
from naiad._kernel.metrics.options import MetricsConfig
from naiad._kernel.metrics.series import MetricStore
from naiad._kernel.metrics.snapshots import MetricFamily
from naiad._kernel.metrics.versions import add_version
from naiad.extend import GateFactory
from naiad.foreign_errors import raise_interrupt
from naiad.threads import on_own_thread

if TYPE_CHECKING:
    from naiad._kernel.caching.opened import OpenedCache
    from naiad._kernel.served import ServedVersion

_logger = logging.getLogger("naiad")

TURN = 0.001
"""Seconds for which metrics are collected at a time."""

_GPU_SECONDS = 1.0


class Metrics:
    """The metrics of a server, for the event loop's thread.

    `serving` are the versions that serve; `made_by_models` what these make for themselves; `gates` limit their
    executions; `cache` is the server's, where it has one.
    """

    def __init__(
        self,
        config: MetricsConfig,
        serving: "Callable[[], Iterable[ServedVersion]]",
        made_by_models: MetricStore,
        read_gpus: Callable[[], tuple[GpuReading, ...]] = read_gpus,
        gates: GateFactory | None = None,
    ) -> None:
        self._config = config
        self._serving = serving
        self._made_by_models = made_by_models
        self._gates = gates
        self.cache: OpenedCache | None = None
        self._machine = Machine(config.interval)
        self._read_gpus = read_gpus
        self._gpus: tuple[GpuReading, ...] = ()
        self._gpus_read_at: float | None = None
        self._gpu_reading: asyncio.Future[tuple[GpuReading, ...]] | None = None

    def collect(self) -> list[MetricFamily]:
        """Every metric as it stands, those of the GPUs as of the last `scrape`; none with `--allow-metrics=false`."""
        if not self._config.enabled:
            return []
        collection = Collection()
        for version in self._serving():
            add_version(collection, version, self._config)
        return self._with_everything_else(collection)

    def collect_made_by_models(self) -> list[MetricFamily]:
        """The metrics that models make for themselves, which cost nothing where there are none."""
        if not self._config.enabled:
            return []
        with self._made_by_models.lock:
            return self._made_by_models.collect()

    async def scrape(self) -> list[MetricFamily]:
        """Every metric, with the GPUs as they are now, in turns with what else the event loop has to do.

        Each version is told as it stands at one moment, all of them within milliseconds.
        """
        if not self._config.enabled:
            return []
        await self._look_at_gpus()
        collection, until = Collection(), monotonic() + TURN
        for version in tuple(self._serving()):
            add_version(collection, version, self._config)
            if monotonic() > until:
                await asyncio.sleep(0)
                until = monotonic() + TURN
        return self._with_everything_else(collection)

    def _with_everything_else(self, collection: Collection) -> list[MetricFamily]:
        if self.cache is not None:
            add_cache(collection, self.cache)
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
        with self._made_by_models.lock:
            return collection.families() + self._of_gates() + self._made_by_models.collect()

    async def _look_at_gpus(self) -> None:
        """Do so unless it was less than `--metrics-interval-ms` ago, on a thread: the driver takes a while.

        A driver that hangs costs one thread, and a collection waits for it a second; the last values count meanwhile.
        """
        now, last = monotonic(), self._gpus_read_at
        if not self._config.gpu or (last is not None and now - last < self._config.interval):
            return
        self._gpus_read_at = now
        reading = self._gpu_reading
        if reading is None or reading.done():
            reading = self._gpu_reading = asyncio.ensure_future(on_own_thread("naiad-gpus", self._read_gpus))
        await asyncio.wait((reading,), timeout=_GPU_SECONDS)
        if reading.done():
            self._gpus = reading.result()

    def _of_gates(self) -> list[MetricFamily]:
        if self._gates is None:
            return []
        try:
            return [family for family in self._gates.metrics() if family.samples]
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("the metrics of execution gates cannot be read")
            return []

    def _add_machine(self, collection: Collection) -> None:
        reading = self._machine.reading(monotonic())
        if self._config.cpu:
            collection.add_all(families.CPU, (), (reading.utilization, reading.total, reading.used))
        collection.add(families.PROCESS_MEMORY, (("process", "server"),), reading.resident)
        collection.add_all(families.PINNED_MEMORY, (), (0, 0))

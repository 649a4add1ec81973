"""Resident memory of the processes of isolated models: a metric that is read from /proc when it is scraped."""

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from naiad.extend import LoadedVersion
from naiad.server import ServerApi
from naiad_config import ModelConfig
from naiad_kit.metrics import MODEL_PROCESS_MEMORY, LabelPairs, MetricFamily, Sample, model_labels

if TYPE_CHECKING:
    from naiad.backend import ModelContext, Placement

_PAGE = os.sysconf("SC_PAGESIZE")


class RunningProcess(Protocol):
    """A process of a model version."""

    @property
    def context(self) -> "ModelContext":
        """The version that it has loaded."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, or is about to."""


class MemoryPart:
    """Takes the processes of one model version; a `naiad.extend.VersionPart`."""

    def __init__(self, add: "Callable[[RunningProcess, Placement | None], None]") -> None:
        self.add = add

    def loaded(self, version: LoadedVersion) -> None:
        """See `VersionPart`."""

    def close(self) -> None:
        """See `VersionPart`: processes that have ended are no longer reported."""


class ResidentMemoryService:
    """Reports the memory of each process that runs instances. `resident` is the memory of a process id, in bytes."""

    name = "resident-memory"

    def __init__(self, resident: "Callable[[int], int] | None" = None) -> None:
        self._resident = resident or resident_bytes
        self._labels: WeakKeyDictionary[RunningProcess, LabelPairs] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def part_of(self, config: ModelConfig) -> MemoryPart:
        """See `ModelService`."""
        return MemoryPart(self.add)

    def add(self, process: RunningProcess, placement: "Placement | None") -> None:
        """Report that process until it ends: its instance is there, or None if all of the version are in it."""
        labels = model_labels(process.context.config, process.context.version)
        if placement is not None:
            gpu = (("gpu", str(placement.device)),) if placement.kind == "GPU" else ()
            labels = (*labels, ("instance", placement.name), *gpu)
        with self._lock:
            self._labels[process] = labels

    def metrics(self) -> list[MetricFamily]:
        """See `naiad_kit.metrics.MetricSource`. Processes with the same labels are added up."""
        with self._lock:
            processes = list(self._labels.items())
        sizes: Counter[LabelPairs] = Counter()
        for process, labels in processes:
            if not process.has_ended:
                sizes[labels] += self._resident(process.pid)
        return [
            MetricFamily(
                MODEL_PROCESS_MEMORY,
                "Resident memory of the processes that run instances of a model, bytes",
                "gauge",
                [Sample(labels, size) for labels, size in sorted(sizes.items()) if size],
            )
        ]

    async def start(self, server: ServerApi) -> None:
        """See `Service`."""

    async def stop(self, seconds: float) -> None:
        """See `Service`."""


def resident_bytes(pid: int) -> int:
    """The resident memory of a process, without that of its children; 0 if it has ended, or without Linux's /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0

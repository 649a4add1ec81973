"""How far the warmup of a version is: told in the index while it loads, and in the log when it takes long."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock, Timer

from naiad.reports import IndexEntry

SLOW = 1.0
"""Seconds after which a warmup that still runs is worth a line."""

_logger = logging.getLogger("naiad.model")


class WarmupProgress:
    """What the instances of one version have done of `runs` each. Every method is for any thread."""

    def __init__(self, model: str, version: int, runs: int, slow: float | None = None) -> None:
        self._model = model
        self._version = version
        self._runs = runs
        self._slow = SLOW if slow is None else slow
        self._lock = Lock()
        self._running: dict[str, str] = {}
        self._timer: Timer | None = None
        self._is_told = False

    def step(self, instance: str, sample: str, iteration: int, done: int) -> None:
        """The instance begins a run of that sample, which it has run before that often, after so many runs of any."""
        _logger.debug(
            "model '%s' instance '%s' is running warmup sample '%s' for iteration %d",
            self._model,
            instance,
            sample,
            iteration,
        )
        with self._lock:
            # how far it is comes first: a line of a terminal may have no room for the rest
            self._running[instance] = f"{done + 1} of {self._runs}, instance '{instance}' runs sample '{sample}'"
            if self._timer is None and not self._is_told:
                self._timer = Timer(self._slow, self._tell)
                self._timer.daemon = True
                self._timer.start()

    def ended(self, instance: str) -> None:
        """The instance is warm, or has failed to become so."""
        with self._lock:
            self._running.pop(instance, None)
            if not self._running and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def __str__(self) -> str:
        """What runs now; "" when nothing does."""
        with self._lock:
            running = list(self._running.values())
        return f"warming up: {'; '.join(running)}" if running else ""

    def _tell(self) -> None:
        told = str(self)
        self._is_told = True
        if told:
            _logger.info(
                "model '%s' version %d is still %s",
                self._model,
                self._version,
                told,
                extra={"model": self._model, "version": str(self._version)},
            )


class Warmups:
    """The warmups of the versions that are loading. For the event loop's thread."""

    def __init__(self) -> None:
        self._progress: dict[tuple[str, int], WarmupProgress] = {}

    @contextmanager
    def following(self, model: str, version: int, progress: WarmupProgress) -> Iterator[None]:
        """Tell of that warmup while the block runs."""
        self._progress[model, version] = progress
        try:
            yield
        finally:
            del self._progress[model, version]

    def told_in(self, index: Sequence[IndexEntry]) -> list[IndexEntry]:
        """The index, where versions that load say how far their warmup is."""
        return [self._told(entry) for entry in index] if self._progress else list(index)

    def _told(self, entry: IndexEntry) -> IndexEntry:
        progress = self._progress.get((entry.name, entry.version))
        if progress is None or entry.state != "LOADING":
            return entry
        return replace(entry, reason=str(progress))

"""Progress of a warm-up: shown in the index while the version loads, and in the log when it takes long."""

import logging
from threading import Lock, Timer

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
        self._is_logged = False

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
            if self._timer is None and not self._is_logged:
                self._timer = Timer(self._slow, self._log)
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

    def _log(self) -> None:
        running = str(self)
        self._is_logged = True
        if running:
            _logger.info(
                "model '%s' version %d is still %s",
                self._model,
                self._version,
                running,
                extra={"model": self._model, "version": str(self._version)},
            )

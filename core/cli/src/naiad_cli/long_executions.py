"""Watch for executions that hang: log each instance that has executed one batch for a minute, and where it is."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from naiad.reports import VersionReport
from naiad_cli.timers import Timers, repeating
from naiad_cli.watchdog import location_of

_logger = logging.getLogger("naiad")

LIMIT = 60.0
"""Seconds; the alert `NaiadInstanceHangs` of deploy/prometheus has the same."""
SECONDS_BETWEEN = 5.0

_Key = tuple[str, int, str, int]


class LongExecutions:
    """Logs an execution that takes longer than the limit, once.

    The next execution of that instance is logged when it takes twice as long, so that a model whose executions are
    long logs a few lines and no more.
    """

    def __init__(self, reports: Callable[[], Iterable[VersionReport]], locate: Callable[[str], str]) -> None:
        self._reports = reports
        self._locate = locate
        self._longest: dict[_Key, float] = {}
        self._logged: set[_Key] = set()

    def check(self) -> None:
        """Look at all instances."""
        busy: dict[_Key, float] = {}
        for version in self._reports():
            for instance in version.instances:  # a configuration may give several groups one name
                key = (version.name, version.version, instance.name, instance.gpu)
                busy[key] = max(busy.get(key, 0.0), instance.busy_seconds)
        self._logged = {key for key in self._logged if busy.get(key, 0.0) >= self._longest[key]}
        self._longest = {key: seconds for key, seconds in self._longest.items() if key in busy}
        for key, seconds in busy.items():
            if key not in self._logged and seconds >= max(LIMIT, 2 * self._longest.get(key, 0.0)):
                self._log(key, seconds)
                self._logged.add(key)
            if key in self._logged:
                self._longest[key] = seconds

    def _log(self, key: _Key, seconds: float) -> None:
        model, version, instance, _ = key
        location = self._locate(instance)
        _logger.warning(
            "instance '%s' of model '%s' version %d has executed one batch for %.0f s%s",
            instance,
            model,
            version,
            seconds,
            location and f", {location}",
            extra={"model": model, "version": str(version)},
        )


@contextmanager
def watching_executions(loop: Timers, reports: Callable[[], Iterable[VersionReport]]) -> Iterator[None]:
    """Check every few seconds while the block runs."""
    executions = LongExecutions(reports, locate_instance)
    with repeating(loop, SECONDS_BETWEEN, executions.check):
        yield


def locate_instance(name: str) -> str:
    """Where the thread of the instance is, as "in …"; "" for one in another process, or that shares its name."""
    threads = [thread.ident for thread in threading.enumerate() if thread.name == f"naiad-{name}"]
    return location_of(threads[0]) if len(threads) == 1 and threads[0] is not None else ""

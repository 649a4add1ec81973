"""Repeat filter of the log: of tracebacks that repeat, the first few of each minute are written, and the rest counted.

A model that fails each of a thousand requests a second writes the same twenty lines each time, and fills a disk with
them. The next one that is written says how many were left out.
"""

import logging
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from naiad_config.errors import describe_error
from naiad_kit.sparse_log import SECONDS_BETWEEN

BURST = 10
"""The most records of one kind that are written in a minute."""

_MOST_KINDS = 1000
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class _Kind:
    """The records of one kind since the last minute began."""

    ends: float
    written: int = 0
    omitted: int = 0


class RepeatFilter:
    """Counts records with a traceback: those of one line of code, one model and one error, digits aside, are one kind.

    Records without a traceback always pass. For any thread.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()  # re-entrant: a `__del__` that runs while it is held may log
        self._kinds: dict[tuple[object, ...], _Kind] = {}

    def lets_through(self, record: logging.LogRecord) -> bool:
        """Whether the record is written; the text of one that follows omitted ones says how many these were."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        text = _DIGITS.sub("#", describe_error(error)[:200])
        key = (record.pathname, record.lineno, getattr(record, "model", ""), text)
        now = self._clock()
        with self._lock:
            kind = self._kinds.get(key)
            if kind is None:
                if len(self._kinds) >= _MOST_KINDS:
                    self._kinds.clear()
                kind = self._kinds[key] = _Kind(now + SECONDS_BETWEEN)
            if now >= kind.ends:
                if kind.omitted:
                    record.msg = f"{record.msg} ({kind.omitted} more like this one were omitted before it)"
                kind.ends, kind.written, kind.omitted = now + SECONDS_BETWEEN, 0, 0
            if kind.written >= BURST:
                kind.omitted += 1
                return False
            kind.written += 1
        return True

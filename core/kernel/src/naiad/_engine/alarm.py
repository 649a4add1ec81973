"""An alarm for delays shorter than a millisecond: event loops round their timers to whole milliseconds."""

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from time import monotonic

_logger = logging.getLogger("naiad.model")

_FAR = 0.02
"""Seconds from which on the loop's own timers, exact to a millisecond, are good enough."""


class Alarm:
    """Calls `ring` on the event loop at a time of `time.monotonic()`, some 0.1 ms late; one time is set at once.

    Its thread starts with the first time set that is near. Setting a later time or none does not wake the thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._changed = threading.Condition()
        self._at: float | None = None
        self._asleep_until = 0.0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float | None) -> None:
        """Ring at that time and no other; None not at all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None and at - monotonic() > _FAR:
            self._timer = self._loop.call_later(at - monotonic(), self._ring)
            at = None
        with self._changed:
            self._at = at
            if at is not None and at < self._asleep_until:
                self._changed.notify()
        if at is not None and self._thread is None:
            (thread := threading.Thread(target=self._run, name="naiad-alarm", daemon=True)).start()
            self._thread = thread  # only now: a start that fails is tried again

    def close(self) -> None:
        """Never ring again, and end the thread."""
        if self._timer is not None:
            self._timer.cancel()
        with self._changed:
            self._at, self._closed = None, True
            self._changed.notify()

    def _run(self) -> None:
        while self._wait():
            try:
                self._loop.call_soon_threadsafe(self._ring)
            except RuntimeError:  # the loop is closed: nobody waits for the alarm any more
                _logger.debug("an alarm outlived its event loop")
                return

    def _wait(self) -> bool:
        """Sleep until the alarm is due; False when it is closed."""
        with self._changed:
            while not self._closed:
                due = math.inf if self._at is None else self._at
                seconds = due - monotonic()
                if seconds <= 0:
                    self._at, self._asleep_until = None, 0.0
                    return True
                self._asleep_until = due
                self._changed.wait(None if seconds == math.inf else seconds)
            return False

"""Busy waiting: whether to look for a message again and again for a moment before a process or an event loop sleeps.

To wake a process that sleeps takes 20 to 100 µs on a virtual machine, for both sides: more than a short execution. With
one request at a time, waiting busily answers up to three times as many, for less processor time; where waits are longer
than that, it would cost what it waits. So it is done only as long as it has paid lately. With sleep the waits are
longer themselves, often too long for that, so it is tried at first, and now and then.
"""

import asyncio
import os
from time import perf_counter

_FAILURES = 8
_RETRY = 256
_TRIES = 12
_SHARE = 1 / 8
_SHORT, _NOT_TOO_LONG = 2, 6
"""Multiples of the time to wait busily: average waits below the first pay, those above the second are not tried."""


class BusyWait:
    """Decides by the lengths of the last waits (seconds), and by how often waiting busily was in vain."""

    __slots__ = ("_average", "_failures", "_waits", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._average = 4 * seconds
        self._failures = 0
        self._waits = 0

    @property
    def pays(self) -> bool:
        """Whether to wait busily, for up to `seconds`."""
        if self._waits % _RETRY < _TRIES:
            return self._average < _NOT_TOO_LONG * self.seconds
        return self._average < _SHORT * self.seconds and self._failures < _FAILURES

    def ended(self, length: float) -> None:
        """A wait is over, after so long."""
        if length <= self.seconds:
            self._failures = 0
        elif self.pays:
            self._failures += 1
        self._average += (min(length, 8 * self.seconds) - self._average) * _SHARE
        self._waits += 1
        if self._waits % _RETRY == 0:
            self._failures = 0


class AwakeLoop:
    """Keeps an event loop awake after a response, for the next request of a client that sends one at a time.

    The loop looks at its sockets in each of its rounds, for up to `seconds`. For the thread that has the loop.
    """

    __slots__ = ("_busy_wait", "_is_looking", "_is_waiting", "_loop", "_since")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._busy_wait = BusyWait(seconds)
        self._since = 0.0
        self._is_waiting = self._is_looking = False

    def responded(self) -> None:
        """A request has its response, and there is no other."""
        self._since = perf_counter()
        self._is_waiting = True
        if self._busy_wait.pays and not self._is_looking:
            self._is_looking = True
            self._loop.call_soon(self._look)

    def arrived(self) -> None:
        """A request has come."""
        if self._is_waiting:
            self._is_waiting = False
            self._busy_wait.ended(perf_counter() - self._since)

    def _look(self) -> None:
        if self._is_waiting and perf_counter() < self._since + self._busy_wait.seconds:
            os.sched_yield()  # the client may have to share this processor
            self._loop.call_soon(self._look)
        else:
            self._is_looking = False

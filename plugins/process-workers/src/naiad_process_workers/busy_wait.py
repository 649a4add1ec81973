"""Busy waiting: whether to look for a message again and again for a moment before a process or an event loop sleeps.

To wake a process that sleeps takes 20 to 100 µs on a virtual machine, for both sides: more than a short execution. With
one request at a time, waiting busily answers three times as many, for less processor time; where waits are longer than
that, it would cost what it waits. So it is done only as long as it has paid lately.
"""

_FAILURES = 8
_RETRY = 256
_SHARE = 1 / 8


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
        return self._average < 2 * self.seconds and self._failures < _FAILURES

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

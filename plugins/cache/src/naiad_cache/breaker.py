"""Circuit breaker of the response cache: skips a cache that does not answer, for growing times."""

TIMEOUTS = 3
"""After this many lookups in a row without an answer in time the cache is skipped."""
FIRST_PAUSE = 1.0
"""Seconds of the first pause; the next is twice as long where the lookup at the end of a pause is not answered."""
LONGEST_PAUSE = 60.0


class Breaker:
    """Counts lookups without an answer. `is_open` says that the cache is skipped, `skipped` how many requests were.

    Seconds are those of any clock that goes on. For the event loop's thread, `answered` for any.
    """

    __slots__ = ("_began", "_pause", "_until", "is_open", "skipped", "timeouts")

    def __init__(self) -> None:
        self.timeouts = 0
        self.is_open = False
        self.skipped = 0
        self._pause = 0.0
        self._began = self._until = 0.0

    def allows(self, now: float) -> bool:
        """Whether a request may be looked up: any while the breaker is closed, one at the end of each pause."""
        if not self.is_open:
            return True
        if now < self._until:
            self.skipped += 1
            return False
        self._open(now, self._pause)  # the others go past the cache until this one is answered
        return True

    def timed_out(self, started: float, now: float) -> float:
        """A lookup that began at `started` has no answer; the seconds for which the cache is skipped from now on.

        0 where it is not, and for a lookup of the time before the pause, which says nothing new.
        """
        if self.is_open and started < self._began:
            return 0.0
        self.timeouts += 1
        if self.timeouts < TIMEOUTS:
            return 0.0
        self._open(now, min(LONGEST_PAUSE, 2 * self._pause) if self._pause else FIRST_PAUSE)
        return self._pause

    def answered(self) -> bool:
        """A lookup was answered in time; whether the cache had been skipped."""
        was_open, self.is_open = self.is_open, False
        self.timeouts, self._pause = 0, 0.0
        return was_open

    def _open(self, now: float, pause: float) -> None:
        self.is_open = True
        self._pause = pause
        self._began, self._until = now, now + pause

"""Places that wait for the same: one line of them for each kind of needs, so that only its first must be looked at."""

import heapq
from collections import deque

from naiad._kernel.rate_limiter.resources import Needs


class Waiting:
    """A place that waits since its want of number `since`; `resumes` in the middle of an execution.

    `standing` is its executions times its priority, `seen` are the executions that had begun in its pools by then.
    """

    __slots__ = ("number", "resumes", "seen", "since", "standing")

    def __init__(self, number: int, since: int, standing: int, seen: int, resumes: bool) -> None:
        self.number = number
        self.since = since
        self.standing = standing
        self.seen = seen
        self.resumes = resumes

    def __lt__(self, other: "Waiting") -> bool:
        return (self.standing, self.since) < (other.standing, other.since)


Turn = tuple[int, int, int, int]
"""What places that wait are sorted by, and at its end the place's number."""


class Line:
    """The places that wait for these needs. A place that leaves is passed over when it would be the first."""

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self._waiting: dict[int, Waiting] = {}
        self._resuming: deque[Waiting] = deque()
        self._oldest: deque[Waiting] = deque()
        self._by_standing: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, place: Waiting) -> None:
        """One more place waits, since later than the others."""
        self._waiting[place.number] = place
        if place.resumes:
            self._resuming.append(place)
            return
        self._oldest.append(place)
        heapq.heappush(self._by_standing, place)
        if len(self._oldest) > 2 * len(self._waiting) + 16:  # mostly those that have left
            self._oldest = deque(each for each in self._oldest if self._waits(each))
        if len(self._by_standing) > 2 * len(self._waiting) + 16:
            self._by_standing = sorted(each for each in self._by_standing if self._waits(each))

    def leave(self, number: int) -> None:
        """The place waits no more."""
        self._waiting.pop(number, None)

    def first(self, begun: int, patience: int) -> Turn | None:
        """Whose turn it is here, None when nobody waits; `begun` executions have begun in the pools of all of them.

        Those that go on come first, then those that have let `patience` of them go before, then the smallest standing.
        """
        for line in (self._resuming, self._oldest):
            while line and not self._waits(line[0]):
                line.popleft()
        while self._by_standing and not self._waits(self._by_standing[0]):
            heapq.heappop(self._by_standing)
        if self._resuming:
            return 0, 0, self._resuming[0].since, self._resuming[0].number
        if not self._oldest:
            return None
        oldest, next_ = self._oldest[0], self._by_standing[0]
        if begun - oldest.seen >= patience:
            return 1, 0, oldest.since, oldest.number
        return 2, next_.standing, next_.since, next_.number

    def _waits(self, place: Waiting) -> bool:
        return self._waiting.get(place.number) is place

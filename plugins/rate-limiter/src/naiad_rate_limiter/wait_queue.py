"""Wait queues of the rate limiter, one for each set of required resources; only the head of each is checked."""

import heapq
from collections import deque

from naiad_rate_limiter.resources import Needs


class WaitingSlot:
    """A waiting slot. `since` numbers the wants in order; `resumes` says that it continues an execution.

    `weighted` is its executions times its priority, `seen` the executions that had begun in its pools by then.
    """

    __slots__ = ("number", "resumes", "seen", "since", "weighted")

    def __init__(self, number: int, since: int, weighted: int, seen: int, resumes: bool) -> None:
        self.number = number
        self.since = since
        self.weighted = weighted
        self.seen = seen
        self.resumes = resumes

    def __lt__(self, other: "WaitingSlot") -> bool:
        return (self.weighted, self.since) < (other.weighted, other.since)


Candidate = tuple[int, int, int, int]
"""The head of a queue: what candidates are sorted by, and at its end the number of the slot."""


class WaitQueue:
    """The slots that wait for these needs. A slot that leaves is skipped when it comes to the head."""

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self._waiting: dict[int, WaitingSlot] = {}
        self._resuming: deque[WaitingSlot] = deque()
        self._oldest: deque[WaitingSlot] = deque()
        self._by_weight: list[WaitingSlot] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, slot: WaitingSlot) -> None:
        """One more slot waits, since later than the others."""
        self._waiting[slot.number] = slot
        if slot.resumes:
            self._resuming.append(slot)
            return
        self._oldest.append(slot)
        heapq.heappush(self._by_weight, slot)
        if len(self._oldest) > 2 * len(self._waiting) + 16:  # mostly slots that no longer wait
            self._oldest = deque(each for each in self._oldest if self._waits(each))
        if len(self._by_weight) > 2 * len(self._waiting) + 16:
            self._by_weight = sorted(each for each in self._by_weight if self._waits(each))

    def leave(self, number: int) -> None:
        """The slot waits no more."""
        self._waiting.pop(number, None)

    def head(self, begun: int, patience: int) -> Candidate | None:
        """The slot that goes first here, None when none waits; `begun` executions have begun in its pools so far.

        Slots that resume go first, then those that have let `patience` executions pass, then the smallest weight.
        """
        for queue in (self._resuming, self._oldest):
            while queue and not self._waits(queue[0]):
                queue.popleft()
        while self._by_weight and not self._waits(self._by_weight[0]):
            heapq.heappop(self._by_weight)
        if self._resuming:
            return 0, 0, self._resuming[0].since, self._resuming[0].number
        if not self._oldest:
            return None
        oldest, lightest = self._oldest[0], self._by_weight[0]
        if begun - oldest.seen >= patience:
            return 1, 0, oldest.since, oldest.number
        return 2, lightest.weighted, lightest.since, lightest.number

    def _waits(self, slot: WaitingSlot) -> bool:
        return self._waiting.get(slot.number) is slot

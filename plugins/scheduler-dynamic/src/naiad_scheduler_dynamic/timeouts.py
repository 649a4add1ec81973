"""Deadlines of waiting tickets, the nearest first."""

import heapq
from collections import deque
from collections.abc import Container, Sized
from typing import Protocol


class Waiting(Container[int], Sized, Protocol):
    """The ids of the tickets that still wait."""


class Deadlines:
    """When tickets have waited long enough.

    Tickets with one and the same timeout come in the order of their deadlines: those stand in a queue, at O(1) each.
    The others, with a shorter timeout of their own, stand in a heap. Deadlines of tickets that no longer wait stay
    where they are until they come up or outnumber the rest.
    """

    __slots__ = ("_heap", "_queue", "_waiting")

    def __init__(self, waiting: Waiting) -> None:
        self._queue: deque[tuple[float, int]] = deque()
        self._heap: list[tuple[float, int]] = []
        self._waiting = waiting

    def __len__(self) -> int:
        return len(self._queue) + len(self._heap)

    def add(self, deadline: float, ticket: int) -> None:
        """Remember that this ticket waits until then at most."""
        if not self._queue or deadline >= self._queue[-1][0]:
            self._queue.append((deadline, ticket))
        else:
            heapq.heappush(self._heap, (deadline, ticket))
        if len(self) > 64 + 2 * len(self._waiting):
            self._forget_the_gone()

    def next(self) -> float | None:
        """The nearest deadline of a ticket that waits."""
        queue, heap, waiting = self._queue, self._heap, self._waiting
        while queue and queue[0][1] not in waiting:
            queue.popleft()
        while heap and heap[0][1] not in waiting:
            heapq.heappop(heap)
        if queue and heap:
            return min(queue[0][0], heap[0][0])
        return queue[0][0] if queue else heap[0][0] if heap else None

    def take_due(self, now: float) -> list[int]:
        """The waiting tickets whose deadline has come, in the order of their deadlines; each is named once."""
        due = []
        while (nearest := self.next()) is not None and nearest <= now:
            if self._queue and self._queue[0][0] == nearest:
                due.append(self._queue.popleft()[1])
            else:
                due.append(heapq.heappop(self._heap)[1])
        return due

    def _forget_the_gone(self) -> None:
        self._queue = deque(entry for entry in self._queue if entry[1] in self._waiting)
        self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
        heapq.heapify(self._heap)

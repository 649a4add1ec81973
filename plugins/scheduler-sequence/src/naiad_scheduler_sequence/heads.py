"""Ready queue of one instance: the first waiting ticket of each sequence, oldest first."""

import heapq
from collections.abc import Container, Iterable

from naiad.scheduler import Ticket
from naiad_scheduler_sequence.sequences import LiveSequence

Head = tuple[int, Ticket, LiveSequence]


class Heads:
    """A heap by ticket id, which is the order of arrival.

    A ticket that waits no longer is passed over when it comes up, so that nothing is searched.
    """

    __slots__ = ("_heap", "_waiting")

    def __init__(self, waiting: Container[int]) -> None:
        self._heap: list[Head] = []
        self._waiting = waiting

    def push(self, sequence: LiveSequence) -> None:
        """The first ticket of that sequence may run."""
        ticket = sequence.head
        if ticket is not None:
            heapq.heappush(self._heap, (ticket.id, ticket, sequence))

    def first(self) -> Head | None:
        """The oldest, None when there is none."""
        heap = self._heap
        while heap:
            if heap[0][0] in self._waiting:
                return heap[0]
            heapq.heappop(heap)
        return None

    def drop_first(self) -> None:
        """Take off what `first` has just answered with."""
        heapq.heappop(self._heap)

    def put_back(self, heads: Iterable[Head]) -> None:
        """Queue heads again that `drop_first` has removed."""
        for head in heads:
            heapq.heappush(self._heap, head)

    def tidy(self, most: int) -> None:
        """Remove tickets that no longer wait once there are over 64 + 2 * `most` entries: amortised O(1) a ticket."""
        if len(self._heap) > 64 + 2 * most:
            self._heap = [head for head in self._heap if head[0] in self._waiting]
            heapq.heapify(self._heap)

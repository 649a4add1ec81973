"""Queue timeouts: how long tickets may wait under a queue policy, and which have expired."""

import heapq
from collections import OrderedDict
from collections.abc import Container, Sized
from typing import Protocol

from naiad.scheduler import Ticket
from naiad_config import ModelQueuePolicy, TimeoutAction


class Waiting(Container[int], Sized, Protocol):
    """The ids of the tickets that wait."""


class Timeouts:
    """The deadlines of the tickets under one policy.

    Tickets with the policy's own timeout come in the order of their deadlines, so those stand in a queue, at O(1) each;
    those with a shorter one of their own stand in a heap, where they are passed over when they wait no longer.
    """

    __slots__ = ("_heap", "_override", "_queue", "_timeout", "_waiting", "rejects")

    def __init__(self, policy: ModelQueuePolicy, waiting: Waiting) -> None:
        self.rejects = policy.timeout_action == TimeoutAction.REJECT
        self._timeout = policy.default_timeout_microseconds / 1e6
        self._override = policy.allow_timeout_override
        self._waiting = waiting
        self._queue: OrderedDict[int, Ticket] = OrderedDict()
        self._heap: list[tuple[float, int, Ticket]] = []

    def __len__(self) -> int:
        """How many deadlines are kept, those of tickets that are gone among them."""
        return len(self._queue) + len(self._heap)

    def add(self, ticket: Ticket) -> None:
        """A ticket begins to wait.

        A request's own timeout counts where the policy allows it and it is shorter than the default timeout, or where
        the policy has no default timeout: the caller then asks for less than for ever.
        """
        timeout = self._timeout
        if self._override and ticket.timeout > 0 and (not timeout or ticket.timeout < timeout):
            heapq.heappush(self._heap, (ticket.arrival + ticket.timeout, ticket.id, ticket))
            if has_too_many_gone(self._heap, self._waiting):
                self._heap = [entry for entry in self._heap if entry[1] in self._waiting]
                heapq.heapify(self._heap)
        elif timeout:
            self._queue[ticket.id] = ticket

    def discard(self, ticket: int) -> None:
        """A ticket waits no longer."""
        self._queue.pop(ticket, None)

    def next(self) -> float | None:
        """The nearest deadline."""
        heap = self._heap
        while heap and heap[0][1] not in self._waiting:
            heapq.heappop(heap)
        if not self._queue:
            return heap[0][0] if heap else None
        first = next(iter(self._queue.values())).arrival + self._timeout
        return min(first, heap[0][0]) if heap else first

    def take_due(self, now: float) -> list[Ticket]:
        """The tickets whose deadline has come, in the order of their deadlines; each is named once."""
        due = []
        while (deadline := self.next()) is not None and deadline <= now:
            if self._heap and self._heap[0][0] == deadline:
                due.append(heapq.heappop(self._heap)[2])
            else:
                due.append(self._queue.popitem(last=False)[1])
        return due


def has_too_many_gone(kept: Sized, waiting: Sized) -> bool:
    """Whether most of what is kept must belong to tickets that wait no longer.

    Clearing up then costs O(1) a ticket, and never is more than twice as much kept as there is reason to.
    """
    return len(kept) > 64 + 2 * len(waiting)

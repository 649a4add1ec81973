"""FIFO queue: for models without priorities, timeouts and queue limits."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from naiad.scheduler import Drop, Ticket


class Queue(Protocol):
    """Tickets in the order in which they are to be served. Every call is O(1), amortised, in its length."""

    def push(self, ticket: Ticket) -> Drop | None:
        """Put a ticket in its place, or refuse it."""
        ...

    def pop(self) -> Ticket | None:
        """Take the first ticket off, None when there is none."""
        ...

    def put_back(self, tickets: Sequence[Ticket]) -> None:
        """Put tickets back where they were popped, in the order in which they were popped."""
        ...

    def remove(self, tickets: Sequence[int]) -> None:
        """Take those of these tickets out that are in the queue."""
        ...


class Fifo:
    """A queue in the order of arrival."""

    __slots__ = ("_tickets",)

    def __init__(self) -> None:
        # Ordered and keyed at once, so that a ticket whose caller left is removed in O(1) and leaves nothing behind.
        self._tickets: OrderedDict[int, Ticket] = OrderedDict()

    def push(self, ticket: Ticket) -> Drop | None:
        """Every ticket is taken."""
        self._tickets[ticket.id] = ticket
        return None

    def pop(self) -> Ticket | None:
        """The oldest ticket."""
        return self._tickets.popitem(False)[1] if self._tickets else None

    def put_back(self, tickets: Sequence[Ticket]) -> None:
        """The first of them is the oldest."""
        for ticket in reversed(tickets):
            self._tickets[ticket.id] = ticket
            self._tickets.move_to_end(ticket.id, last=False)

    def remove(self, tickets: Sequence[int]) -> None:
        """O(1) each, wherever it stands."""
        if self._tickets:
            for ticket in tickets:
                self._tickets.pop(ticket, None)

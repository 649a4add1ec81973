"""Open batch: grows from the head of the queue until it is dispatched."""

from collections.abc import Hashable

from naiad.scheduler import Ticket
from naiad_scheduler_dynamic.fifo import Queue
from naiad_scheduler_dynamic.reasons import Reason

_SHAPE, _NEXT_TOO_LARGE = Reason.SHAPE, Reason.NEXT_TOO_LARGE


class OpenBatch:
    """Tickets that may share a batch, in order.

    `size` is the sum of their batch sizes, `oldest` the earliest arrival, and `preferred` how many tickets from the
    first make up the largest preferred size that falls on a border between two requests (0: none does). A ticket is
    looked at once when it joins, so asking again while the batch waits costs nothing more.
    """

    __slots__ = ("_preferred_sizes", "oldest", "preferred", "shape", "size", "tickets")

    def __init__(self, preferred_sizes: frozenset[int]) -> None:
        self._preferred_sizes = preferred_sizes
        self.tickets: dict[int, Ticket] = {}
        self.size = 0
        self.preferred = 0
        self.oldest = 0.0
        self.shape: Hashable = None

    def grow(self, queue: Queue, limit: int) -> Reason | None:
        """Take tickets off the queue up to a size of `limit`, which only a first ticket alone may pass.

        The answer says which next ticket stopped it, None when the queue or the room is at its end.
        """
        tickets, pop, size = self.tickets, queue.pop, self.size
        while size < limit:
            ticket = pop()
            if ticket is None:
                return None
            if not tickets:
                self.shape, self.oldest = ticket.shape_key, ticket.arrival
            elif ticket.shape_key != self.shape:
                queue.put_back((ticket,))
                return _SHAPE
            elif size + ticket.batch_size > limit:
                queue.put_back((ticket,))
                return _NEXT_TOO_LARGE
            elif ticket.arrival < self.oldest:
                self.oldest = ticket.arrival
            size = self._append(ticket)
        return None

    def take(self) -> tuple[int, ...]:
        """Close the batch: the ids of all its tickets."""
        ids = tuple(self.tickets)
        self.tickets, self.size, self.preferred = {}, 0, 0
        return ids

    def take_preferred(self) -> tuple[int, ...]:
        """Close the batch at its preferred size; the tickets behind it start the next one."""
        count = self.preferred
        if count == len(self.tickets):
            return self.take()
        ids = tuple(self.tickets)
        self._restart({ticket: self.tickets[ticket] for ticket in ids[count:]})
        return ids[:count]

    def remove(self, ticket: int) -> None:
        """Forget a ticket of this batch."""
        del self.tickets[ticket]
        self._restart(self.tickets)

    def put_back(self, queue: Queue) -> None:
        """Give all tickets back to the queue that they came from."""
        if self.tickets:
            queue.put_back(tuple(self.tickets.values()))
            self._restart({})

    def _append(self, ticket: Ticket) -> int:
        """Add a ticket; the size with it."""
        self.tickets[ticket.id] = ticket
        size = self.size = self.size + ticket.batch_size
        if size in self._preferred_sizes:
            self.preferred = len(self.tickets)
        return size

    def _restart(self, tickets: dict[int, Ticket]) -> None:
        self.tickets, self.size, self.preferred = {}, 0, 0
        for ticket in tickets.values():
            self._append(ticket)
        self.oldest = min((ticket.arrival for ticket in tickets.values()), default=0.0)

"""A live sequence in the batcher: its waiting and running tickets."""

import math
from collections import deque

from naiad.scheduler import Ticket


class LiveSequence:
    """Requests that belong together, from the first to the last.

    `number` is the batcher's own and never given twice; `id` is the caller's. `slot` and `instance` are -1 in the
    backlog, where `deadline` is when its callers have waited too long. `head` is the first ticket that waits, `offered`
    says that it may run, and `running` counts those that an instance has and are not settled. `silent_until` is when it
    has been silent too long, inf while it is not silent, and `watched` says that this is checked. `closed` says
    that its last request has come, `begun` that an instance has had a request of it, `over` that it is none any more.

    There may be a hundred thousand that have nothing to do, so an idle one is small: most have one request at a time.
    """

    __slots__ = (
        "_later",
        "begun",
        "closed",
        "deadline",
        "head",
        "id",
        "instance",
        "number",
        "offered",
        "over",
        "running",
        "silent_until",
        "slot",
        "watched",
    )

    def __init__(self, number: int, correlation_id: int | str) -> None:
        self.number = number
        self.id = correlation_id
        self.slot = -1
        self.instance = -1  # that has the slot; a small number, at hand, while that of the slot may be far away
        self.deadline = math.inf
        self.head: Ticket | None = None
        self._later: deque[Ticket] | None = None  # behind the head
        self.offered = False
        self.running = 0
        self.silent_until = math.inf
        self.watched = False
        self.closed = False
        self.begun = False
        self.over = False

    def push(self, ticket: Ticket) -> None:
        """One more ticket waits, behind all others."""
        if self.head is None:
            self.head = ticket
        elif self._later is None:
            self._later = deque((ticket,))
        else:
            self._later.append(ticket)

    def pop(self) -> None:
        """The head waits no longer; the ticket behind it is the head."""
        if self._later:
            self.head = self._later.popleft()
        else:
            self.head = self._later = None

    def take_all(self) -> list[Ticket]:
        """Every ticket that waits; none does any more."""
        tickets = [] if self.head is None else [self.head, *(self._later or ())]
        self.head = self._later = None
        return tickets

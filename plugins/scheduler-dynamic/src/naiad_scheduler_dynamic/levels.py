"""Priority level: its waiting tickets and its queue policy."""

from collections import deque

from naiad.scheduler import Drop, DropReason, Ticket
from naiad_scheduler_dynamic.timeouts import Timeouts


class Level:
    """The tickets of one level, those within their timeout (`fresh`) to be served before those past it (`delayed`).

    `timeouts` are those of its policy, None where the policy has none. `waiting` counts its tickets that wait, wherever
    they stand. `queued` says that the queue has this level among those to look at.
    """

    __slots__ = ("delayed", "fresh", "limit", "number", "queued", "timeouts", "waiting")

    def __init__(self, number: int, limit: int, timeouts: Timeouts | None) -> None:
        self.number = number
        self.limit = limit
        self.timeouts = timeouts
        self.fresh: deque[Ticket] = deque()
        self.delayed: deque[Ticket] = deque()
        self.waiting = 0
        self.queued = False

    def refusal(self, ticket: Ticket) -> Drop | None:
        """The answer to a ticket for which there is no room, None when there is some."""
        if not self.limit or self.waiting < self.limit:
            return None
        whose = f" of priority {self.number}" if self.number else ""
        detail = (
            f"{self.waiting} requests{whose} wait already and max_queue_size is {self.limit}; "
            "raise it, add instances, or send less"
        )
        return Drop((ticket.id,), DropReason.QUEUE_FULL, detail)

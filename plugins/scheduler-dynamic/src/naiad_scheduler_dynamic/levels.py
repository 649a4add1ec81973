"""One priority level: its waiting tickets and the queue policy that they are under."""

from collections import OrderedDict

from naiad.config import ModelQueuePolicy, TimeoutAction
from naiad.scheduler import Ticket


class Level:
    """The tickets of one level, those within their timeout (`fresh`) to be served before those past it (`delayed`).

    `waiting` also counts the tickets that were popped and may yet be put back. `queued` says that the queue has this
    level among those to look at.
    """

    __slots__ = ("delayed", "fresh", "limit", "number", "override", "queued", "rejects", "timeout", "waiting")

    def __init__(self, number: int, policy: ModelQueuePolicy) -> None:
        self.number = number
        self.limit = policy.max_queue_size
        self.timeout = policy.default_timeout_microseconds / 1e6
        self.override = policy.allow_timeout_override
        self.rejects = policy.timeout_action == TimeoutAction.REJECT
        self.fresh: OrderedDict[int, Ticket] = OrderedDict()
        self.delayed: OrderedDict[int, Ticket] = OrderedDict()
        self.waiting = 0
        self.queued = False

    def timeout_of(self, ticket: Ticket) -> float:
        """How long this ticket may wait, in seconds, 0 for ever.

        A request's own timeout counts where the policy allows it and it is shorter than the default timeout, or where
        the policy has no default timeout: the caller then asks for less than for ever.
        """
        if self.override and ticket.timeout > 0 and (not self.timeout or ticket.timeout < self.timeout):
            return ticket.timeout
        return self.timeout

    def full(self) -> str:
        """What to tell a caller when there is no room."""
        whose = f" of priority {self.number}" if self.number else ""
        return (
            f"{self.waiting} requests{whose} wait already and max_queue_size is {self.limit}; "
            "raise it, add instances, or send less"
        )

"""A sequence as the batcher knows it, and who waits and runs in it."""

import math
from collections import deque

from naiad.scheduler import Ticket


class LiveSequence:
    """Requests that belong together, from the first to the last.

    `number` is the batcher's own and never given twice; `id` is the caller's. `slot` is -1 in the backlog, where
    `deadline` is when its callers have waited too long. `tickets` wait, in order; `running` counts those that an
    instance has and are not settled. `closed` says that its last request has come, `begun` that an instance has had
    a request of it, `over` that it is none any more.
    """

    __slots__ = ("begun", "closed", "deadline", "id", "number", "over", "running", "slot", "tickets")

    def __init__(self, number: int, correlation_id: int | str) -> None:
        self.number = number
        self.id = correlation_id
        self.slot = -1
        self.deadline = math.inf
        self.tickets: deque[Ticket] = deque()
        self.running = 0
        self.closed = False
        self.begun = False
        self.over = False

"""A call: one request on its way through a queue, and how its caller takes it back."""

import asyncio
from collections.abc import Callable

from naiad._kernel.answers import Outcome
from naiad.scheduler import Ticket
from naiad.types import Request

Deliver = Callable[[Outcome], None]
"""Gets the response or the error of a call, on the event loop's thread."""


class Call:
    """One request on its way through a queue. `cancel` says that the caller went away: nothing more is delivered."""

    __slots__ = ("_take_back", "deliver", "outcome", "over", "request", "ticket", "timer")

    def __init__(self, take_back: "Callable[[Call], None]", request: Request, deliver: Deliver, ticket: Ticket) -> None:
        self._take_back = take_back
        self.request = request
        self.deliver = deliver
        self.ticket = ticket
        self.over = False
        self.outcome: Outcome | None = None
        self.timer: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """Forget the request, and an outcome that earlier calls hold back; harmless after delivery."""
        self.outcome = None
        if not self.over:
            self.over = True
            self._take_back(self)

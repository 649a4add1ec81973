"""Schedulers that record their calls, wait, or refuse as a test says."""

from collections.abc import Sequence

from naiad.default_scheduler import FifoScheduler
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, Ticket


class Recording(FifoScheduler):
    """The default scheduler, that records its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.tickets: list[Ticket] = []
        self.settled: list[int] = []
        self.decisions = 0

    def arrive(self, ticket: Ticket) -> Drop | None:
        self.tickets.append(ticket)
        return super().arrive(ticket)

    def settle(self, tickets: Sequence[int], now: float) -> None:
        self.settled += tickets
        super().settle(tickets, now)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.decisions += 1
        return super().decide(now, idle)


class Pairs(Recording):
    """Sends two requests at once."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if not idle or len(self._waiting) < 2:
            return NOTHING
        return Decision((Dispatch(idle[0], (self._oldest(), self._oldest()), "pair"),))


class Hesitant(Recording):
    """Sends nothing the first time it is asked, but wants to be asked again in five seconds."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.decisions += 1
        return super().decide(now, idle) if self.decisions > 1 else Decision(wake_at=now + 5.0)


class Strict(Recording):
    """Refuses what waits too long in the queue or finds it full, as the test says."""

    refuse: Drop | None = None
    drops: tuple[Drop, ...] = ()

    def arrive(self, ticket: Ticket) -> Drop | None:
        return self.refuse or super().arrive(ticket)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        drops, self.drops = self.drops, ()
        for drop in drops:
            for ticket in drop.tickets:
                self._waiting.pop(ticket, None)
        return Decision(super().decide(now, idle).dispatches, drops)

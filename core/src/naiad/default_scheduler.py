"""The default scheduler, a plugin like any other: one queue, and an idle instance takes the oldest request."""

from collections import deque
from collections.abc import Sequence

from naiad.config import ModelConfig
from naiad.hookspecs import hookimpl
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, Scheduler, SchedulerFactory, Ticket


@hookimpl
def naiad_schedulers() -> Sequence[SchedulerFactory]:
    """The first-in, first-out scheduler for models that name no scheduler."""
    return [DefaultScheduling()]


class DefaultScheduling:
    """Makes `FifoScheduler`s for configurations without a `scheduling_choice`."""

    name = "default"
    choice = ""

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        """A new queue; nothing of the configuration matters."""
        return FifoScheduler()


class FifoScheduler:
    """One request a batch, in the order of arrival, whichever instance is idle; no limit and no timeout."""

    def __init__(self) -> None:
        self._queue: deque[int] = deque()
        self._waiting: set[int] = set()

    def arrive(self, ticket: Ticket) -> Drop | None:
        """Take every ticket in."""
        self._queue.append(ticket.id)
        self._waiting.add(ticket.id)
        return None

    def settle(self, tickets: Sequence[int], now: float) -> None:
        """Forget the tickets that still wait; those that ran are forgotten already."""
        self._waiting.difference_update(tickets)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        """Give the oldest request to each idle instance."""
        if not self._waiting or not idle:
            return NOTHING
        dispatches = []
        for instance in idle:
            ticket = self._oldest()
            if ticket is None:
                break
            dispatches.append(Dispatch(instance, (ticket,), "single"))
        return Decision(tuple(dispatches))

    def _oldest(self) -> int | None:
        while self._queue:
            ticket = self._queue.popleft()
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                return ticket
        return None

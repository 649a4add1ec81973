"""The default scheduler, a plugin like any other: one queue, and an idle instance takes the oldest request."""

from collections import OrderedDict
from collections.abc import Sequence

from naiad.hookspecs import hookimpl
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, Scheduler, SchedulerFactory, Ticket
from naiad_config import ModelConfig


@hookimpl
def naiad_schedulers() -> Sequence[SchedulerFactory]:
    """The first-in, first-out scheduler for models that name no scheduler."""
    return [DefaultScheduling()]


class DefaultScheduling:
    """Makes `FifoScheduler`s for configurations without a `scheduling_choice`."""

    name = "default"
    choice = ""

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        """A new queue."""
        return FifoScheduler()


class FifoScheduler:
    """One request a batch, in the order of arrival, whichever instance is idle; no limit and no timeout."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, None] = OrderedDict()

    def arrive(self, ticket: Ticket) -> Drop | None:
        """Take every ticket in."""
        self._waiting[ticket.id] = None
        return None

    def settle(self, tickets: Sequence[int], now: float) -> None:
        """Forget the tickets that still wait."""
        for ticket in tickets:
            self._waiting.pop(ticket, None)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        """Give the oldest request to each idle instance."""
        if not self._waiting or not idle:
            return NOTHING
        taken = idle[: len(self._waiting)]
        return Decision(tuple(Dispatch(instance, (self._oldest(),), "single") for instance in taken))

    def _oldest(self) -> int:
        return self._waiting.popitem(last=False)[0]

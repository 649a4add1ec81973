"""Schedulers for tests, and a plugin that gives one to the models of a server."""

from collections.abc import Callable, Sequence

from naiad.default_scheduler import FifoScheduler
from naiad.hookspecs import hookimpl
from naiad.scheduler import NOTHING, Decision, Dispatch, Scheduler, SchedulerFactory
from naiad_config import ModelConfig


class Ordered(FifoScheduler):
    """The default scheduler, whose responses keep the order of their requests."""

    preserves_ordering = True


class AllAtOnce(FifoScheduler):
    """Sends all that waits as one batch."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        """One dispatch of every ticket that waits."""
        if not idle or not self._waiting:
            return NOTHING
        return Decision((Dispatch(idle[0], tuple(self._oldest() for _ in range(len(self._waiting))), "all"),))


class Scheduling:
    """A plugin that gives models with `dynamic_batching` the schedulers that a function makes."""

    name = "test"
    choice = "dynamic_batching"

    def __init__(self, make: Callable[[], Scheduler]) -> None:
        self._make = make

    @hookimpl
    def naiad_schedulers(self) -> Sequence[SchedulerFactory]:
        """The factory, which is the plugin itself."""
        return [self]

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        """A new scheduler."""
        return self._make()

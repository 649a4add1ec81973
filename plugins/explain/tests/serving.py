"""A server with naiad-explain in the test's own event loop, and a scheduler that makes batches."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_explain
from naiad import Server
from naiad.default_scheduler import FifoScheduler
from naiad.hookspecs import hookimpl
from naiad.scheduler import NOTHING, Decision, Dispatch, Scheduler, SchedulerFactory
from naiad_config import ModelConfig
from naiad_testing import in_loop


def running(root: Path, *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with naiad-explain and these plugins."""
    return in_loop.running(root, naiad_explain, *plugins, **{"allow_explain": True} | options)


class AllAtOnce(FifoScheduler):
    """Sends all that waits as one batch."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if not idle or not self._waiting:
            return NOTHING
        return Decision((Dispatch(idle[0], tuple(self._oldest() for _ in range(len(self._waiting))), "all"),))


class Scheduling:
    """A plugin that gives models with `dynamic_batching` that scheduler."""

    name = "test"
    choice = "dynamic_batching"

    @hookimpl
    def naiad_schedulers(self) -> Sequence[SchedulerFactory]:
        return [self]

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        return AllAtOnce()

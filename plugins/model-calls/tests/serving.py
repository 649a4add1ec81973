"""A server with naiad-model-calls in the test's own event loop, and a scheduler that keeps the order of responses."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import naiad_model_calls
from naiad import Server
from naiad.default_scheduler import FifoScheduler
from naiad.hookspecs import hookimpl
from naiad.scheduler import Scheduler, SchedulerFactory
from naiad_config import ModelConfig
from naiad_testing import in_loop


def running(root: Path | Sequence[Path], *plugins: object, **options: Any) -> AbstractAsyncContextManager[Server]:
    """A started server with these plugins beside naiad-model-calls."""
    return in_loop.running(root, naiad_model_calls, *plugins, **options)


class Ordered(FifoScheduler):
    preserves_ordering = True


class Scheduling:
    """A plugin that gives models with `dynamic_batching` a scheduler that keeps the order of the responses."""

    name = "test"
    choice = "dynamic_batching"

    @hookimpl
    def naiad_schedulers(self) -> Sequence[SchedulerFactory]:
        return [self]

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        return Ordered()

"""A server with naiad-explain in the test's own event loop, and a scheduler that makes batches."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

import naiad_explain
from naiad import Server
from naiad.default_scheduler import FifoScheduler
from naiad.hookspecs import hookimpl
from naiad.scheduler import NOTHING, Decision, Dispatch, Scheduler, SchedulerFactory
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_tensors.tensors import Tensor


@asynccontextmanager
async def running(root: Path, *plugins: object, allow_explain: bool = True) -> AsyncIterator[Server]:
    """A started server with naiad-explain and these plugins."""
    options = {"allow-explain": allow_explain}
    async with Server(model_repository=[root], plugins=[naiad_explain, *plugins], options=options) as server:
        yield server


def request(model: str, *values: float, **fields: Any) -> Request:
    """A request with INPUT, FP32[-1]."""
    return Request(model, {"INPUT": Tensor.of("INPUT", np.array(values, dtype=np.float32))}, **fields)


def rows(model: str, *values: float, **fields: Any) -> Request:
    """A request with INPUT, FP32[-1] behind a batch dimension: one value a row."""
    tensor = Tensor.of("INPUT", np.array(values, dtype=np.float32).reshape(-1, 1))
    return Request(model, {"INPUT": tensor}, **fields)


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

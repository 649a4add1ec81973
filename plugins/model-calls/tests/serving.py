"""A server with naiad-model-calls in the test's own event loop, over a repository that the test writes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

import naiad_model_calls
from naiad import Server
from naiad.backend import Answer, Backend, BackendTraits, Batch, ModelContext, Placement
from naiad.default_scheduler import FifoScheduler
from naiad.hookspecs import hookimpl
from naiad.scheduler import Scheduler, SchedulerFactory
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_tensors.tensors import Tensor


@asynccontextmanager
async def running(root: Path | Sequence[Path], *plugins: object, **options: Any) -> AsyncIterator[Server]:
    """A started server. It does not exit for models that fail; `exit_on_error=True` and the like set other options."""
    given = {name.replace("_", "-"): value for name, value in options.items()}
    roots = [root] if isinstance(root, Path) else root
    offered = [naiad_model_calls, *plugins]
    async with Server(model_repository=roots, plugins=offered, options={"exit-on-error": False, **given}) as server:
        yield server


def request(model: str, *values: float, **fields: Any) -> Request:
    """A request with INPUT, FP32[-1]."""
    tensor = Tensor.of("INPUT", np.array(values, dtype=np.float32))
    return Request(model, {"INPUT": tensor}, **fields)


async def off_the_loop(wait: Callable[[], None]) -> None:
    """Wait for something that blocks, while the loop goes on."""
    await asyncio.to_thread(wait)


class Steered:
    """A backend, and its own plugin, whose steps are functions that a test gives; without one a step does the usual."""

    def __init__(
        self,
        name: str = "steered",
        *,
        complete: Callable[[ModelContext], ModelConfig] | None = None,
        load: Callable[[ModelContext], Any] | None = None,
        instantiate: Callable[[Placement], Any] | None = None,
        execute: Callable[[Batch], Answer | Future[Answer]] | None = None,
        **traits: Any,
    ) -> None:
        self.traits = BackendTraits(name=name, **traits)
        self.execute = execute or (lambda batch: {"OUTPUT": batch.input("INPUT")})
        self.placements: list[Placement] = []
        self.contexts: list[ModelContext] = []
        self._complete = complete
        self._load = load
        self._instantiate = instantiate

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        return [self]

    def complete(self, context: ModelContext) -> ModelConfig:
        return self._complete(context) if self._complete is not None else context.config

    def load(self, context: ModelContext) -> Any:
        self.contexts.append(context)
        return self._load(context) if self._load is not None else SteeredModel(self)

    def instantiate(self, placement: Placement) -> Any:
        self.placements.append(placement)
        return self._instantiate(placement) if self._instantiate is not None else SteeredInstance(self)


class SteeredModel:
    """A model of Steered; a test may give it the optional members of the contract."""

    def __init__(self, backend: Steered) -> None:
        self._backend = backend

    def instantiate(self, placement: Placement) -> Any:
        return self._backend.instantiate(placement)

    def close(self) -> None:
        return None


class SteeredInstance:
    """An instance of Steered that takes `concurrency` batches at once."""

    def __init__(self, backend: Steered, concurrency: int = 1) -> None:
        self.concurrency = concurrency
        self._backend = backend

    def execute(self, batch: Batch) -> Answer | Future[Answer]:
        return self._backend.execute(batch)

    def close(self) -> None:
        return None


FLOATS = """
input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""


def write_model(
    root: Path, name: str, config: str = FLOATS, backend: str = "steered", versions: Sequence[int] = (1,)
) -> Path:
    """The folder of a model of that backend."""
    (root / name).mkdir(parents=True, exist_ok=True)
    for version in versions:
        (root / name / str(version)).mkdir(exist_ok=True)
    (root / name / "config.pbtxt").write_text(f'backend: "{backend}"\n{config}\n', encoding="utf-8")
    return root / name


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

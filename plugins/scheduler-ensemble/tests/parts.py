"""Models whose functions a test gives, joined into ensembles, on a server in the test's own event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

import naiad_metrics
import naiad_model_calls
from naiad import Request, Server, Tensor
from naiad.backend import Answer, Backend, BackendTraits, Batch, ModelContext, Placement
from naiad.hookspecs import hookimpl
from naiad.servables import ModelResolver, Servable, ServableContext, ServableFactory
from naiad_config import ModelConfig
from naiad_scheduler_ensemble.factory import EnsembleFactory, PreparedEnsemble
from naiad_scheduler_ensemble.version import EnsembleVersion
from naiad_testing.serving import without_frontends

from .conftest import side, step

Function = Callable[[Batch], Answer]


class Parts:
    """A backend, and its own plugin: `function` by the model's name, and the `requests` that each model has executed.

    `hold(name)` makes a model wait before it executes, until `release(name)`. `ensembles` are those that serve.
    """

    def __init__(self, root: Path) -> None:
        self.traits = BackendTraits(name="parts")
        self.root = root
        self.functions: dict[str, Function] = {}
        self.requests: dict[str, list[Request]] = {}
        self.not_ready: dict[str, str] = {}
        self.ensembles: dict[str, EnsembleVersion] = {}
        self._open: dict[str, threading.Event] = {}
        self._holding = threading.Semaphore(0)

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        return [self]

    def add(self, name: str, inputs: str, outputs: str, function: Function, more: str = "") -> None:
        """A model with tensors of FP32[4]."""
        self.functions[name] = function
        self.write(name, f'backend: "parts" {side("input", inputs)} {side("output", outputs)} {more}')

    def join(self, name: str, inputs: str, outputs: str, *steps: str, more: str = "", scheduling: str = "") -> None:
        """An ensemble of these steps, each as `model a=A -> y=B`."""
        written = []
        for each in steps:
            model, rest = each.split(" ", 1)
            read, created = rest.split(" -> ")
            written.append(step(model, read, created))
        self.write(
            name,
            f'platform: "ensemble" {side("input", inputs)} {side("output", outputs)} {more} '
            f"ensemble_scheduling {{ {' '.join(written)} {scheduling} }}",
        )

    def write(self, name: str, config: str, version: int = 1) -> None:
        """A folder with that configuration."""
        (self.root / name / str(version)).mkdir(parents=True, exist_ok=True)
        (self.root / name / "config.pbtxt").write_text(config)

    def hold(self, name: str) -> None:
        self._open[name] = threading.Event()

    def release(self, name: str) -> None:
        self._open[name].set()

    async def held(self, times: int = 1) -> None:
        """So many executions wait."""
        for _ in range(times):
            await asyncio.to_thread(self._holding.acquire)

    def complete(self, context: ModelContext) -> ModelConfig:
        return context.config

    def load(self, context: ModelContext) -> "Part":
        return Part(self, context.config.name)

    def execute(self, name: str, batch: Batch) -> Answer:
        gate = self._open.get(name)
        if gate is not None:
            self._holding.release()
            gate.wait()
        self.requests.setdefault(name, []).extend(batch.requests)
        return self.functions[name](batch)

    @asynccontextmanager
    async def serving(self, **options: Any) -> AsyncIterator[Server]:
        """A server of all of them."""
        settings = {"exit-on-error": False} | {name.replace("_", "-"): value for name, value in options.items()}
        plugins = [self, RecordingEnsembles(self.ensembles), naiad_model_calls, without_frontends(naiad_metrics)]
        async with Server(model_repository=[self.root], plugins=plugins, options=settings) as server:
            try:
                yield server
            finally:
                for gate in self._open.values():
                    gate.set()


class RecordingEnsembles(EnsembleFactory):
    """The plugin, which also records the last version of each ensemble that was bound."""

    def __init__(self, ensembles: dict[str, EnsembleVersion]) -> None:
        self._ensembles = ensembles

    @hookimpl
    def naiad_servables(self) -> Sequence[ServableFactory]:
        return [self]

    def prepare(self, context: ServableContext) -> PreparedEnsemble:
        ensembles = self._ensembles

        class Recording(PreparedEnsemble):
            def bind(self, models: ModelResolver, earlier: Mapping[int, Servable]) -> dict[int, Servable]:
                bound = super().bind(models, earlier)
                ensembles[context.config.name] = bound[max(bound)]  # type: ignore[assignment]
                return bound

        prepared = Recording(context)
        prepared.warn_of_namespaces()
        return prepared


class Part:
    """A model of Parts, and its instance."""

    def __init__(self, parts: Parts, name: str) -> None:
        self._parts = parts
        self._name = name

    def instantiate(self, placement: Placement) -> "Part":
        return self

    def execute(self, batch: Batch) -> Answer:
        return self._parts.execute(self._name, batch)

    def ready(self) -> str:
        return self._parts.not_ready.get(self._name, "")

    def close(self) -> None:
        return None


def plus(amount: float) -> Function:
    """y is x plus that much."""
    return lambda batch: {"y": batch.input("x") + np.float32(amount)}


def add(batch: Batch) -> Answer:
    """y is a plus b."""
    return {"y": batch.input("a") + batch.input("b")}


def times(count: int) -> Function:
    """A decoupled model that answers x plus 0, 1, 2, …, so many times."""

    def answer(batch: Batch) -> Answer:
        from naiad.backend import Reply

        for index in range(len(batch.requests)):
            sender = batch.sender(index)
            x = batch.requests[index].inputs["x"].array
            for number in range(count):
                sender.send(Reply({"y": x + np.float32(number)}))
            sender.send(None, final=True)
        return [None] * len(batch.requests)

    return answer


def ask(model: str, value: float = 1.0, name: str = "A", rows: int = 0, **fields: Any) -> Request:
    """A request with one input of FP32[4], with so many rows in front where there are any."""
    shape = (rows, 4) if rows else (4,)
    return Request(model, {name: Tensor.of(name, np.full(shape, value, np.float32))}, **fields)


async def infer(server: Server, request: Request) -> dict[str, float]:
    """The first element of each output."""
    response = await server.infer(request)
    return {name: float(tensor.array.flat[0]) for name, tensor in response.outputs.items()}

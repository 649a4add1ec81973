"""Models that do what a test says, in a server with the rate limiter."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

import naiad_loop_handoff
import naiad_metrics
import naiad_model_calls
import naiad_rate_limiter
from naiad import Server
from naiad.backend import Answer, Backend, BackendTraits, Batch, ModelContext, Placement, Reply
from naiad.hookspecs import hookimpl
from naiad.types import Request, Response
from naiad_config import ModelConfig
from naiad_kit.calls import ModelCalls, models_of
from naiad_tensors.tensors import Tensor
from naiad_testing.loops import turns
from naiad_testing.serving import without_frontends

Behaviour = Callable[[Batch, ModelCalls], Any]
"""What a model does with a batch, and with the models that it may call."""

_FLOATS = """
input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""
_ON_THE_LOOP = 'parameters { key: "execute_on" value { string_value: "event_loop" } }'

METRICS = without_frontends(naiad_metrics)


class Models:
    """A model repository, and the backend of its models, which is its own plugin. `placements` are their instances."""

    def __init__(self, root: Path) -> None:
        self.traits = BackendTraits(name="behaving")
        self.placements: list[Placement] = []
        self._root = root
        self._behaviours: dict[str, Behaviour] = {}

    def add(self, name: str, behaviour: Behaviour, config: str = "") -> None:
        """One more model, whose instances behave so."""
        self._behaviours[name] = behaviour
        (self._root / name / "1").mkdir(parents=True)
        (self._root / name / "config.pbtxt").write_text(f'backend: "behaving"\n{_FLOATS}\n{config}\n', encoding="utf-8")

    @asynccontextmanager
    async def running(
        self, plugins: Sequence[object] = (naiad_rate_limiter, naiad_model_calls, METRICS), **options: Any
    ) -> AsyncIterator[Server]:
        """A started server with these plugins; it does not exit for models that fail to load."""
        settings = {name.replace("_", "-"): value for name, value in options.items()}
        async with Server(
            model_repository=[self._root],
            plugins=[self, naiad_loop_handoff, *plugins],
            options={"exit-on-error": False, **settings},
        ) as server:
            yield server

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        return [self]

    def complete(self, context: ModelContext) -> ModelConfig:
        return context.config

    def load(self, context: ModelContext) -> "_Model":
        return _Model(self._behaviours[context.config.name], models_of(context), self.placements)


class _Model:
    def __init__(self, behaviour: Behaviour, models: ModelCalls, placements: list[Placement]) -> None:
        self._behaviour = behaviour
        self._models = models
        self._placements = placements

    def instantiate(self, placement: Placement) -> "_Instance":
        self._placements.append(placement)
        return _Instance(self._behaviour, self._models)

    def close(self) -> None:
        return None


class _Instance:
    def __init__(self, behaviour: Behaviour, models: ModelCalls) -> None:
        self._behaviour = behaviour
        self._models = models

    def execute(self, batch: Batch) -> Answer:
        answer: Answer = self._behaviour(batch, self._models.within(batch.requests))
        return answer

    def close(self) -> None:
        return None


class Held:
    """Models whose executions, on the event loop, end when the test says so. `begun` names all that have begun."""

    def __init__(self, models: Models, **groups: str) -> None:
        self.begun: list[str] = []
        self._executing: list[tuple[str, Future[Answer]]] = []
        for name, config in groups.items():
            models.add(name, self._behaviour_of(name), f"{_ON_THE_LOOP} {config}")

    def _behaviour_of(self, name: str) -> Behaviour:
        def behaviour(batch: Batch, models: ModelCalls) -> Future[Answer]:
            future: Future[Answer] = Future()
            self.begun.append(name)
            self._executing.append((name, future))
            return future

        return behaviour

    async def executing(self) -> list[str]:
        """The models that execute, after all that is ready has happened."""
        await turns()
        return sorted(name for name, _ in self._executing)

    def end(self, name: str) -> None:
        """Let one execution of the model end."""
        index = next(index for index, (each, _) in enumerate(self._executing) if each == name)
        _, future = self._executing.pop(index)
        future.set_result(output(1))

    async def end_all(self) -> None:
        """Let everything end that executes or waits."""
        while await self.executing():
            self.end(self._executing[0][0])


def group(*resources: str, priority: int = 0, count: int = 1) -> str:
    """An instance group whose instances need these resources, such as `name: "R" count: 1`."""
    listed = " ".join(f"resources {{ {resource} }}" for resource in resources)
    return f"instance_group {{ kind: KIND_CPU count: {count} rate_limiter {{ {listed} priority: {priority} }} }}\n"


def units(count: int) -> str:
    """So many units of the resource R."""
    return f'name: "R" count: {count}'


def request(model: str, *values: float, **fields: Any) -> Request:
    """A request with INPUT, FP32[-1]."""
    return Request(model, {"INPUT": Tensor.of("INPUT", np.array(values, dtype=np.float32))}, **fields)


def begin(server: Server, *models: str) -> list["asyncio.Future[Response]"]:
    """A request to each of the models, on its way."""
    return [asyncio.ensure_future(server.infer(request(model, 1))) for model in models]


def double(batch: Batch, models: ModelCalls) -> Answer:
    """OUTPUT is twice INPUT."""
    return {"OUTPUT": batch.input("INPUT") * 2}


def sends_many(batch: Batch, models: ModelCalls) -> Answer:
    """As many responses as INPUT says, numbered from 0 up."""
    sender = batch.sender(0)
    for number in range(int(value_of(batch))):
        sender.send(Reply(output(number)))
    sender.send(None, final=True)
    return [None]


def output(*values: float) -> dict[str, np.ndarray]:
    """An answer with these values."""
    return {"OUTPUT": np.array(values, dtype=np.float32)}


def value_of(batch: Batch) -> float:
    """The first value of a batch."""
    return float(batch.input("INPUT")[0])


def value(response: Response) -> float:
    """The first value of a response."""
    return float(response.outputs["OUTPUT"].array[0])


def with_outputs(responses: Iterable[Response]) -> Iterator[Response]:
    """The responses but for the empty last one."""
    return (response for response in responses if response.outputs)

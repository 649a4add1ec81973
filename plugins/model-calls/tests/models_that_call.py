"""Models that call other models: each is a function of its batch and of the calls it may make."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from naiad import Server
from naiad.backend import Answer, Batch, ModelContext, Placement, Reply
from naiad.types import Response
from naiad_kit.calls import ModelCalls, models_of
from naiad_testing.in_loop import FLOATS, request, write_model
from naiad_testing.steered import Steered, SteeredInstance, SteeredModel

from .serving import running

Behaviour = Callable[[Batch, ModelCalls], Any]
TWO = "instance_group { count: 2 }\n"


class Calling:
    """A repository of such models. `contexts` are those of the models, by name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contexts: dict[str, ModelContext] = {}
        self.behaviours: dict[str, Behaviour] = {}
        self.backend = Steered(load=self._load)

    def add(self, name: str, behaviour: Behaviour, config: str = "") -> None:
        self.behaviours[name] = behaviour
        write_model(self.root, name, FLOATS + config)

    @asynccontextmanager
    async def running(self, *plugins: object, **options: Any) -> AsyncIterator[Server]:
        async with running(self.root, self.backend, *plugins, **options) as server:
            yield server

    def _load(self, context: ModelContext) -> SteeredModel:
        name = context.config.name
        self.contexts[name] = context
        calling = self

        class Instance(SteeredInstance):
            def execute(self, batch: Batch) -> Answer:
                answer: Answer = calling.behaviours[name](batch, models_of(context).within(batch.requests))
                return answer

        class Model(SteeredModel):
            def instantiate(self, placement: Placement) -> Instance:
                return Instance(calling.backend)

        return Model(self.backend)


def value_of(batch: Batch) -> float:
    return float(batch.input("INPUT")[0])


def output_of(*values: float) -> dict[str, np.ndarray]:
    return {"OUTPUT": np.array(values, dtype=np.float32)}


def reply(*values: float) -> Reply:
    return Reply(output_of(*values))


def value(response: Response) -> float:
    return float(response.outputs["OUTPUT"].array[0])


def double(batch: Batch, _: ModelCalls) -> Answer:
    return {"OUTPUT": batch.input("INPUT") * 2}


def doubles_through(name: str) -> Behaviour:
    """A model that adds 1 to what another model makes of its input."""

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        return output_of(value(models.infer(request(name, value_of(batch)))) + 1)

    return behaviour

"""A server with the real scheduler of sequences, and a backend that adds up what a sequence sends."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

import naiad_loop_handoff
import naiad_metrics
import naiad_scheduler_sequence
from naiad import Server
from naiad.backend import Answer, Batch, Placement
from naiad.types import Request, Response
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.fake_backend import FakeInstance, FakeModel
from naiad_testing.serving import without_frontends

CONFIG = """
max_batch_size: %d
input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
sequence_batching {
  %s
  state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: [ 1 ] }
}
%s
"""
PATIENT = "max_sequence_idle_microseconds: 60000000"


def summing(batch: Batch) -> Answer:
    """Y is the sum of all X of a sequence so far."""
    total = batch.input("X") + batch.input("SUM_IN")
    return {"Y": total, "SUM_OUT": total}


class Listening(FakeBackend):
    """Its instances note which sequences are over, in order with what they execute; `made` counts them."""

    def __init__(self, answer: Callable[[Batch], Answer] = summing) -> None:
        super().__init__("listening", answer)
        self.heard: list[tuple[int | str, str]] = []
        self.instances = 0

    def load(self, context: Any) -> "ListeningModel":
        super().load(context)
        return ListeningModel(self, f"{context.config.name} {context.version}")


class ListeningModel(FakeModel):
    """Makes instances that listen."""

    def instantiate(self, placement: Placement) -> "ListeningInstance":
        assert isinstance(self.backend, Listening)
        self.backend.instances += 1
        return ListeningInstance(self.backend, placement.name)


class ListeningInstance(FakeInstance):
    """Notes what it hears."""

    def sequence_ended(self, correlation_id: int | str, reason: str) -> None:
        assert isinstance(self.backend, Listening)
        self.backend.heard.append((correlation_id, str(reason)))


@asynccontextmanager
async def serving(
    root: Path, backend: FakeBackend, batching: str = PATIENT, rest: str = "", batch_size: int = 4, **options: Any
) -> AsyncIterator[Server]:
    """A server with one model of sequences."""
    backend.write(root, "m", CONFIG % (batch_size, batching, rest))
    settings = {name.replace("_", "-"): value for name, value in options.items()}
    plugins = (backend, naiad_loop_handoff, naiad_scheduler_sequence, without_frontends(naiad_metrics))
    async with Server(model_repository=[root], plugins=plugins, options={"exit-on-error": False, **settings}) as server:
        assert server.ready().ready, server.ready().reasons
        yield server


def request(value: int, who: int | str = 7, flags: str = "", **fields: Any) -> Request:
    """A request that sends a value; `flags` has `start` or `end`."""
    tensor = Tensor.of("X", np.array([[value]], dtype=np.int32))
    return Request(
        "m",
        {"X": tensor},
        correlation_id=who,
        sequence_start="start" in flags,
        sequence_end="end" in flags,
        **fields,
    )


async def ask(server: Server, value: int, who: int | str = 7, flags: str = "", **fields: Any) -> int:
    """Y in the response."""
    return number(await server.infer(request(value, who, flags, **fields)))


def number(response: Response) -> int:
    """Y."""
    return int(response.outputs["Y"].array[0, 0])

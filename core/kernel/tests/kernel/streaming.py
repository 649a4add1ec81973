"""Models that send given responses, and callers that keep what they get, for tests of streams."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from naiad import Server
from naiad.backend import Answer, Batch, Reply
from naiad.errors import NaiadError
from naiad.server import Outcome
from naiad.types import Response
from naiad_testing.in_loop import FLOATS, request, running, write_model
from naiad_testing.steered import Steered

DECOUPLED = FLOATS + "model_transaction_policy { decoupled: true }\n"
END = "end"


def reply(*values: float, **parameters: Any) -> Reply:
    return Reply({"OUTPUT": np.array(values, dtype=np.float32)}, parameters)


def batched(value: float) -> Reply:
    return Reply({"OUTPUT": np.array([[value]], dtype=np.float32)})


def values_of(outcomes: list[Outcome]) -> list[Any]:
    """What a caller got: values of responses, END for an empty one, errors as their text; the last one in a tuple."""
    return [
        _value_of(each) if isinstance(each, Response) and not each.final else (_value_of(each),) for each in outcomes
    ]


def _value_of(outcome: Outcome) -> Any:
    if isinstance(outcome, NaiadError):
        return f"{type(outcome).__name__}: {outcome}"
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {outcome.error}"
    return END if outcome.is_empty else outcome.outputs["OUTPUT"].array.tolist()


@asynccontextmanager
async def serving(
    root: Path,
    execute: Callable[[Batch], Answer],
    config: str = DECOUPLED,
    *,
    plugins: Sequence[object] = (),
    **options: Any,
) -> AsyncIterator[Server]:
    backend = Steered(execute=execute)
    write_model(root, "m", config)
    async with running(root, backend, *plugins, **options) as server:
        yield server


class Caller:
    """Keeps what is delivered; `done` is set with the last of it."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.done = asyncio.Event()

    def __call__(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if isinstance(outcome, NaiadError) or outcome.final:
            self.done.set()


async def answers_of(server: Server, **fields: Any) -> list[Any]:
    """What a caller that takes several responses got."""
    caller = Caller()
    server.submit(request("m", 1.0, **fields), caller, streams=True)
    await caller.done.wait()
    return values_of(caller.outcomes)


def sending(*sent: tuple[Reply | NaiadError | None, bool]) -> Callable[[Batch], Answer]:
    """A model that sends these replies, each with its final flag, before `execute` returns."""

    def execute(batch: Batch) -> Answer:
        for index in range(len(batch.requests)):
            for each, final in sent:
                batch.sender(index).send(each, final)
        return [None] * len(batch.requests)

    return execute

"""A server whose event loop goes from thread to thread, over a repository that the test writes."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np

import naiad_loop_handoff
from naiad import Server
from naiad.types import Request
from naiad_loop_handoff.candidacy import MAJORITY
from naiad_loop_handoff.handoff import LoopHandoff
from naiad_tensors.tensors import Tensor

Body = Callable[[Server], Awaitable[None]]


def lead(root: Path, body: Body, *plugins: object, loop_factory: Any = None, **options: Any) -> None:
    """Run the body with a started server, on an event loop that quick models may run."""
    given = {name.replace("_", "-"): value for name, value in options.items()}

    async def serve(handoff: LoopHandoff) -> None:
        server = Server(
            model_repository=[root],
            plugins=[*plugins, naiad_loop_handoff],
            options={"exit-on-error": False, **given},
            runner=handoff,
        )
        async with server:
            await body(server)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        handoff = LoopHandoff(runner.get_loop())
        handoff.run(serve(handoff))


async def led_by(server: Server, model: str) -> int:
    """Ask a model until its thread runs the event loop; the thread."""
    here = threading.get_ident()
    for _ in range(100 * MAJORITY):
        await server.infer(request(model, 1.0))
        if threading.get_ident() != here:
            return threading.get_ident()
    raise AssertionError(f"no thread of model '{model}' leads after {100 * MAJORITY} requests")


def request(model: str, *values: float) -> Request:
    """A request with INPUT, FP32[-1]."""
    return Request(model, {"INPUT": Tensor.of("INPUT", np.array(values, dtype=np.float32))})


async def until(done: Callable[[], object]) -> None:
    """Let the loop go on until it is so; the test's time limit ends what never becomes so."""
    while not done():  # noqa: ASYNC110 - what is awaited happens on other threads
        await asyncio.sleep(0)

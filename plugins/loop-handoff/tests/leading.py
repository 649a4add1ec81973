"""A server whose event loop goes from thread to thread, over a repository that the test writes."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import naiad_loop_handoff
from naiad import Server
from naiad_loop_handoff.candidacy import MAJORITY
from naiad_loop_handoff.handoff import LoopHandoff
from naiad_testing.in_loop import request

Body = Callable[[Server], Awaitable[None]]


def lead(root: Path, body: Body, *plugins: object, loop_factory: Any = None, **options: Any) -> None:
    """Run the body with a started server, on an event loop that quick models may run."""
    settings = {name.replace("_", "-"): value for name, value in options.items()}

    async def serve(handoff: LoopHandoff) -> None:
        server = Server(
            model_repository=[root],
            plugins=[*plugins, naiad_loop_handoff],
            options={"exit-on-error": False, **settings},
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

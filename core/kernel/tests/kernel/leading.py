"""A server whose event loop goes from thread to thread, over a repository that the test writes."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from naiad import Server
from naiad._kernel.leading.candidacy import MAJORITY
from naiad._kernel.leading.relay import Relay

from .serving import request

Body = Callable[[Server], Awaitable[None]]


def lead(root: Path, body: Body, *plugins: object, loop_factory: Any = None, **options: Any) -> None:
    """Run the body with a started server, on an event loop that quick models may run."""
    given = {name.replace("_", "-"): value for name, value in options.items()}

    async def serve(relay: Relay) -> None:
        server = Server(
            model_repository=[root], plugins=plugins, options={"exit-on-error": False, **given}, runner=relay
        )
        async with server:
            await body(server)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        relay = Relay(runner.get_loop())
        relay.run(serve(relay))


async def led_by(server: Server, model: str) -> int:
    """Ask a model until its thread runs the event loop; the thread."""
    here = threading.get_ident()
    for _ in range(100 * MAJORITY):
        await server.infer(request(model, 1.0))
        if threading.get_ident() != here:
            return threading.get_ident()
    raise AssertionError(f"no thread of model '{model}' leads after {100 * MAJORITY} requests")

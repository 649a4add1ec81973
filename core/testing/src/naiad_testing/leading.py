"""Servers whose event loop goes from thread to thread: tests for the hand-off of the loop to quick models."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from naiad import PluginRegistry, Server
from naiad.options import Settings
from naiad.types import Request
from naiad_testing.in_loop import request

_MOST_REQUESTS = 10_000


def lead(
    root: Path,
    body: Callable[[Server], Awaitable[None]],
    *plugins: object,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    **options: Any,
) -> None:
    """Run the body with a started server, on an event loop that quick models may run.

    One of the plugins must be the one that runs the event loop (naiad-loop-handoff).
    """
    settings = {name.replace("_", "-"): value for name, value in options.items()}
    registry = PluginRegistry.of(plugins)
    with asyncio.Runner(loop_factory=loop_factory) as process:
        runner = registry.loop_runner(process.get_loop(), Settings(registry.options(), {}))
        if runner is None:
            raise AssertionError("no plugin runs the event loop; pass naiad_loop_handoff")

        async def serve() -> None:
            chosen = {"exit-on-error": False, **settings}
            async with Server(model_repository=[root], plugins=plugins, options=chosen, runner=runner) as server:
                await body(server)

        runner.run(serve())


async def led_by(server: Server, model: str, make: Callable[[str, float], Request] = request) -> int:
    """Send requests, which `make` makes, to a model until its thread runs the event loop; the thread."""
    here = threading.get_ident()
    for _ in range(_MOST_REQUESTS):
        await server.infer(make(model, 1.0))
        if threading.get_ident() != here:
            return threading.get_ident()
    raise AssertionError(f"no thread of model '{model}' runs the event loop after {_MOST_REQUESTS} requests")

"""Which thread runs an event loop, which may change."""

import asyncio

from naiad.threads import on_own_thread

__all__ = ["on_own_thread", "runs_here"]


def runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the calling code runs on that loop, which must never wait for itself."""
    return asyncio._get_running_loop() is loop

"""Which thread this is, as far as an event loop is concerned: the thread that runs it may change."""

import asyncio


def runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the calling code runs on that loop, which must never wait for itself."""
    return asyncio._get_running_loop() is loop

"""Threads for one kind of blocking call, a bounded number at once, so that no kind of work starves another."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from naiad.threads import on_own_thread

_T = TypeVar("_T")


class BoundedThreads:
    """Runs blocking calls on daemon threads of one name, at most `count` at once; the others wait for `slots`."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self.slots = asyncio.Semaphore(count)

    async def run(self, function: Callable[..., _T], *args: object) -> _T:
        """As `on_own_thread`, once there are fewer than `count`."""
        async with self.slots:
            return await on_own_thread(self._name, function, *args)


@asynccontextmanager
async def lent(slots: asyncio.Semaphore) -> AsyncIterator[None]:
    """Give one of the slots back during the block, in which its holder waits for another, and acquire one after it."""
    slots.release()
    try:
        yield
    finally:
        await slots.acquire()

"""Large blocks of arenas that are free: their memory goes back soon, even if no further request comes for the model.

Blocks are given back with the next message, which a model without requests may not get for hours.
"""

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from contextlib import suppress

_SECONDS = 0.1
"""Seconds from the first free block until all blocks that are free by then are given back.

A busy model gives them back earlier, with its messages.
"""


class LargeBlocks:
    """Adds keys of blocks to `freed`, on any thread, and has the loop call `give_back` soon after."""

    def __init__(self, freed: deque[tuple[int, int]], loop: AbstractEventLoop, give_back: Callable[[], None]) -> None:
        self._freed = freed
        self._loop = loop
        self._give_back = give_back
        self._is_due = False

    def append(self, key: tuple[int, int]) -> None:
        """A block is free. The garbage collector calls this too, so it waits for nothing."""
        self._freed.append(key)
        if not self._is_due:
            self._is_due = True
            with suppress(RuntimeError):  # the loop is closed, and the arenas are about to be
                self._loop.call_soon_threadsafe(self._loop.call_later, _SECONDS, self._due)

    def _due(self) -> None:
        self._is_due = False
        self._give_back()

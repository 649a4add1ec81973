"""A limit on the requests that are started in one turn of the event loop, over all connections of a listener."""

import asyncio
from collections import deque
from collections.abc import Callable

STARTED_PER_TURN = 64
"""The most requests that are started between two turns of the event loop."""


class TurnBudget:
    """Starts at most 64 requests in a turn of the event loop; further ones wait in the order in which they came.

    libuv hands out up to 48 times 1,024 events before it runs callbacks and timers. With 2,000 connections whose
    requests were refused at once, those of other clients and health checks waited for 6 to 13 s.

    Who starts a request takes one off `free` where there is one, calls `refill_soon` when it was the last, and
    `postpone` where there is none. A server under light load seldom gets there: it pays for a comparison.
    """

    __slots__ = ("_scheduled", "_waiting", "free")

    def __init__(self) -> None:
        self.free = STARTED_PER_TURN
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def refill_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make room in the next turn of the loop."""
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._refill, loop)

    def postpone(self, start: Callable[[], None]) -> None:
        """Call `start` in a later turn; there is no room in this one, so that a refill is on its way."""
        self._waiting.append(start)

    def _refill(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start those that wait; what they pipelined goes behind the others, as `free` stays 0 meanwhile."""
        self._scheduled = False
        remaining = STARTED_PER_TURN
        try:
            while self._waiting and remaining:
                remaining -= 1
                self._waiting.popleft()()
        finally:
            self.free = remaining
            if not remaining or self._waiting:
                self.free = 0
                self.refill_soon(loop)

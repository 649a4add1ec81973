"""Limit on the requests that all connections of a listener start in one turn of the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable

STARTED_PER_TURN = 64
"""The maximum of requests that are started in one turn of the event loop."""


class TurnBudget:
    """Starts at most 64 requests in a turn of the event loop; further requests wait in the order of their arrival.

    libuv delivers up to 48 times 1,024 events before it runs callbacks and timers. With 2,000 connections whose
    requests were refused at once, those of other clients and health checks waited for 6 to 13 s.

    A caller that starts a request decrements `free`, calls `refill_soon` at 0, and calls `postpone` if `free` was 0
    already. A server under light load pays for one comparison.
    """

    __slots__ = ("_scheduled", "_waiting", "free")

    def __init__(self) -> None:
        self.free = STARTED_PER_TURN
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def refill_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Schedule a refill in the next turn of the loop."""
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._refill, loop)

    def postpone(self, start: Callable[[], None]) -> None:
        """Call `start` in a later turn; a refill is already scheduled, because `free` is 0."""
        self._waiting.append(start)

    def _refill(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start postponed requests; `free` stays 0 meanwhile, so that requests pipelined behind them queue last."""
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

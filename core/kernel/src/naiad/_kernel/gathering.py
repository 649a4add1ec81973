"""When a queue asks its scheduler: not with each request, but when those that come together are there."""

import asyncio
from collections.abc import Callable, Sequence

_ROUNDS = 3
_LASTING = 8


class Gathering:
    """Asks for a decision at the end of the event loop's round, so that what happens in one round is decided together.

    A transport may hand over in several rounds what came at once. While requests keep coming and an instance is idle,
    up to three rounds more are waited for: with 16 concurrent requests over gRPC that makes batches of twice the size.
    Only where one of the last eight batches joined several requests; a caller who is alone waits for nobody.
    """

    __slots__ = ("_armed", "_arrivals", "_crowd", "_decide", "_idle", "_loop", "_rounds", "_seen")

    def __init__(self, loop: asyncio.AbstractEventLoop, decide: Callable[[], None], idle: Sequence[int]) -> None:
        """`idle` are the idle instances, as they are whenever it is looked at."""
        self._loop = loop
        self._decide = decide
        self._idle = idle
        self._armed = False
        self._arrivals = self._seen = 0
        self._rounds = self._crowd = 0

    def arrive(self) -> None:
        """A request has come."""
        self._arrivals += 1
        if not self._armed:
            self.arm()

    def arm(self) -> None:
        """Ask for a decision when all that happens at this instant was told."""
        if not self._armed:
            self._armed = True
            self._rounds = _ROUNDS
            self._seen = -1
            self._loop.call_soon(self._look)

    def sent(self, requests: int) -> None:
        """A batch of so many requests was sent."""
        if requests > 1:
            self._crowd = _LASTING
        elif self._crowd:
            self._crowd -= 1

    def _look(self) -> None:
        if self._crowd and self._rounds and self._seen != self._arrivals and self._idle:
            self._seen = self._arrivals
            self._rounds -= 1
            self._loop.call_soon(self._look)
            return
        self._armed = False
        self._decide()

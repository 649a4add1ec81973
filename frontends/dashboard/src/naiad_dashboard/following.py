"""Slow requests: follows requests while there are viewers, and keeps the slowest of the last five minutes."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import count
from time import monotonic, monotonic_ns, time
from typing import Any

from naiad.errors import NaiadError
from naiad.types import Response, Trace
from naiad_kit.explanation import Explanation
from naiad_kit.timeline import timeline
from naiad_kit.tracing import FollowsRequests

_MINUTES = 5
_OF_MINUTE = 20
_TICK = 0.1
_OF_TICK = 10
"""The most requests that are followed in a tick: 100 a second, of which each costs about 20 µs."""


@dataclass(frozen=True, slots=True)
class SlowRequest:
    """A request that took `seconds`, when it ended (seconds since the epoch), its error ("" for none) and timeline."""

    model: str
    ended: float
    seconds: float
    error: str
    timeline: dict[str, Any]


@dataclass(slots=True)
class _Minute:
    """The slowest requests of one minute, as a heap with the fastest of them first."""

    started: float
    slowest: list[tuple[float, int, SlowRequest]] = field(default_factory=list)


class Follower:
    """Follows at most 100 requests a second while there are viewers; `followed` counts them.

    For the event loop's thread.
    """

    def __init__(self, tracing: FollowsRequests | None) -> None:
        self.followed = 0
        self._tracing = tracing
        self._viewers = 0
        self._minutes: deque[_Minute] = deque(maxlen=_MINUTES)
        self._order = count()
        self._remaining = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def can_follow(self) -> bool:
        """Whether the server has a tracing service that offers its requests."""
        return self._tracing is not None

    def enter(self) -> None:
        """A viewer has come: follow requests while there is one."""
        self._viewers += 1
        if self._viewers == 1:
            self._start_tick()

    def leave(self) -> None:
        """A viewer has left; without viewers no request is followed."""
        self._viewers -= 1
        if not self._viewers:
            if self._timer is not None:
                self._timer.cancel()
            self._follow_next(active=False)

    def slowest(self, most: int = 20) -> list[SlowRequest]:
        """The slowest requests of the last five minutes, the slowest first."""
        now = monotonic()
        every = [entry for each in self._minutes if now - each.started < 60 * _MINUTES for entry in each.slowest]
        return [request for _, _, request in sorted(every, key=lambda entry: -entry[0])[:most]]

    def ended(self, trace: "FollowedRequest", seconds: float) -> None:
        """A followed request is over."""
        now = monotonic()
        if not self._minutes or now - self._minutes[-1].started >= 60:
            self._minutes.append(_Minute(now))
        heap = self._minutes[-1].slowest
        if len(heap) >= _OF_MINUTE and heap[0][0] >= seconds:
            return
        document = timeline(trace, trace.started_ns, monotonic_ns())
        request = SlowRequest(trace.model, time(), seconds, trace.error, document)
        entry = (seconds, next(self._order), request)
        if len(heap) < _OF_MINUTE:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)

    def _start_tick(self) -> None:
        self._remaining = _OF_TICK
        self._follow_next(active=True)
        self._timer = asyncio.get_running_loop().call_later(_TICK, self._start_tick)

    def _begin(self, model: str, version: int, inner: Trace | None) -> Trace:
        self.followed += 1
        self._remaining -= 1
        self._follow_next(active=self._remaining > 0)
        return FollowedRequest(self, model, version, inner)

    def _follow_next(self, active: bool) -> None:
        if self._tracing is not None:
            self._tracing.follow_next(self._begin if active else None)


class FollowedRequest(Explanation):
    """The trace of a followed request, which reports its end once."""

    def __init__(self, follower: Follower, model: str, version: int, inner: Trace | None) -> None:
        super().__init__(model, version, inner)
        self.started_ns = monotonic_ns()
        self.error = ""
        self._follower: Follower | None = follower

    def record(self, event: str, ns: int | None = None) -> None:
        """Keep the event; the first may lie before the begin of the trace, when its bytes came."""
        if ns is not None and ns < self.started_ns:
            self.started_ns = ns
        super().record(event, ns)

    def responded(self, outcome: Response | NaiadError) -> None:
        """Keep the error too."""
        if isinstance(outcome, NaiadError):
            self.error = str(outcome)
        super().responded(outcome)

    def end(self) -> None:
        """Report the end, and end the inner trace."""
        super().end()
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.ended(self, (monotonic_ns() - self.started_ns) / 1e9)

"""Timeouts of one connection: close it when it idles, or takes too long for a head or a body."""

import asyncio
from collections.abc import Callable

from naiad_http.limits import Limits
from naiad_http.reader import RequestReader
from naiad_kit.frontends.connection_limits import SLOWEST_BYTES_PER_SECOND

_NEVER = float("inf")


class IdleWatch:
    """Watchdog of one connection, with one timer for any number of requests.

    Set `moved` to the loop's time on activity and `began` to 0 when a request is answered, and increment `drained`
    whenever the client has read everything. `working` says that a request is in flight, which does not count as idle;
    `on_overdue` is called when a timeout expires, and again if that does not end the connection. A client that does
    not read its responses is disconnected.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        reader: RequestReader,
        limits: Limits,
        working: Callable[[], bool],
        on_overdue: Callable[[], None],
    ) -> None:
        self.moved = loop.time()
        self.began = 0.0
        self.drained = 0
        self._loop = loop
        self._transport = transport
        self._reader = reader
        self._limits = limits
        self._working = working
        self._on_overdue = on_overdue
        self._in_body = False
        self._before = (0, 0)
        self._stalled = self.moved
        self._due = self.moved + limits.idle
        self._timer = loop.call_later(limits.idle, self._check)

    def begin(self) -> None:
        """Bytes of an incomplete request arrived: start the timeout of its head or body."""
        self.moved = self._loop.time()
        in_body = self._reader.begun is not None
        if not self.began or in_body != self._in_body:
            self.began, self._in_body = self.moved, in_body
            due = self._next_due()
            if due < self._due:
                self._arm(due)

    def stop(self) -> None:
        """Stop, and drop the references to the connection, which would live until a garbage collection."""
        self._timer.cancel()
        self._working, self._on_overdue = (lambda: False), (lambda: None)

    @property
    def reason(self) -> str:
        """The message for the timeout that expired."""
        limits = self._limits
        now = self._loop.time()
        if now >= self.moved + limits.idle:
            return f"no bytes came for {limits.idle:g} seconds: {self._reader.missing}"
        if self._in_body:
            return (
                f"the body took longer than {limits.body:g} seconds and one for each {SLOWEST_BYTES_PER_SECOND} bytes: "
                f"{self._reader.missing}; send it faster, or raise --http-body-seconds"
            )
        return f"the head took longer than {limits.head:g} seconds; send it faster, or raise --http-head-seconds"

    def _next_due(self) -> float:
        """The loop's time at which the next timeout expires without further activity."""
        if self._working():
            return _NEVER
        idle = self.moved + self._limits.idle
        if not self.began:
            return idle
        if self._in_body:
            due = self.began + self._limits.body + self._reader.body_size / SLOWEST_BYTES_PER_SECOND
        else:
            due = self.began + self._limits.head
        return min(idle, due)

    def _arm(self, due: float) -> None:
        self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(due - self._loop.time(), self._check)

    def _check(self) -> None:
        now, idle = self._loop.time(), self._limits.idle
        unsent = self._transport.get_write_buffer_size()
        if (unsent, self.drained) != self._before:
            self._before, self._stalled = (unsent, self.drained), now
        elif unsent and now >= self._stalled + idle:
            self._transport.abort()
            return
        due = _NEVER if unsent else self._next_due()
        if due <= now:
            self._on_overdue()
            due = _NEVER
        self._arm(min(due, now + idle))

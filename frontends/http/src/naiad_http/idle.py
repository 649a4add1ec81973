"""Closing connections on which nothing moves any more."""

import asyncio
from collections.abc import Callable

IDLE_SECONDS = 75.0
"""A connection on which nothing moves for so long is closed."""


class IdleWatch:
    """Watches one connection, with one timer whatever the number of its requests.

    Set `moved` to the loop's time when something moves, and count in `drained` how often the client has caught up with
    what is written to it. `working` says that the client waits for us, which does not count as idle; `on_idle` is
    called when the client is idle, and again if that does not end it. A client that reads nothing of what is written to
    it is cut off.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        working: Callable[[], bool],
        on_idle: Callable[[], None],
    ) -> None:
        self.moved = loop.time()
        self._loop = loop
        self._transport = transport
        self._working = working
        self._on_idle = on_idle
        self.drained = 0
        self._before = (0, 0)
        self._timer = loop.call_later(IDLE_SECONDS, self._look)

    def stop(self) -> None:
        """Watch no longer."""
        self._timer.cancel()

    def _look(self) -> None:
        unsent = self._transport.get_write_buffer_size()
        now, before = (unsent, self.drained), self._before
        self._before = now
        if unsent and now == before:
            self._transport.abort()
            return
        wait = IDLE_SECONDS
        if not unsent and not self._working():
            wait = self.moved + IDLE_SECONDS - self._loop.time()
            if wait <= 0:
                self._on_idle()
                wait = IDLE_SECONDS
        self._timer = self._loop.call_later(wait, self._look)

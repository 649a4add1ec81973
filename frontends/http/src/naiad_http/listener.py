"""uvicorn inside a loop that is already running: no loop and no signal handlers of its own, sockets made here."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import uvicorn

from naiad_http.connection_context import ConnectionContext
from naiad_http.protocol import HttpProtocol

_SECOND = 1.0
_NEVER = 86400.0
"""When the event loop gives up a connection that ends: each connection's own watch looks whether anything moves."""
_ACCEPTED_PER_TURN = 16
"""So many descriptors of the listening socket are watched: libuv accepts one connection for each in a turn.

With one, 2,000 clients that were refused at once left room for 34 new clients a second.
"""
_LAST_WORDS = 0.5
"""So many seconds before its end a stopping listener tells clients that their answers are not going to come."""


class Listener(uvicorn.Server):
    """One uvicorn server. `listening` is set when it takes connections; `end` makes `serve` return.

    uvicorn itself looks ten times a second whether it is to end and whether its connections have ended; this one is
    told, so that it sleeps when there is nothing to do and ends at once when it can.
    """

    def __init__(self, config: uvicorn.Config, context: ConnectionContext) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._context = context
        self._ending = asyncio.Event()
        self._empty = asyncio.Event()
        self._grace = 0.0
        self._descriptors: list[socket.socket] = []
        context.on_lost = self._lost

    def end(self, grace: float) -> None:
        """Take no new connections, let those that work do so for `grace` seconds more, then close them."""
        self._grace = grace
        self._ending.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to who owns the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        loop, config = asyncio.get_running_loop(), self.config
        factory: Any = config.http_protocol_class
        make = partial(factory, config=config, server_state=self.server_state, app_state=self.lifespan.state)
        options: dict[str, Any] = {"backlog": config.backlog}
        if config.ssl is not None:
            options |= {"ssl": config.ssl, "ssl_shutdown_timeout": _NEVER}
            options["ssl_handshake_timeout"] = self._context.limits.head
        self.servers = []
        for each in sockets or []:
            create = loop.create_unix_server if each.family == socket.AF_UNIX else loop.create_server
            for descriptor in (each, *(each.dup() for _ in range(_ACCEPTED_PER_TURN - 1))):
                self.servers.append(await create(make, sock=descriptor, **options))
                self._descriptors.append(descriptor)
        self.started = True
        self.listening.set()

    async def main_loop(self) -> None:
        """Keep the Date header right until the end."""
        while not self._ending.is_set():
            await self.on_tick(0)
            headers = self.server_state.default_headers
            self._context.date = b"".join(b"%b: %b\r\n" % (name.title(), value) for name, value in headers)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _SECOND)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listening sockets, and every connection as soon as it has been answered."""
        for server in self.servers:
            server.close()
        for listening in (*self._descriptors, *(sockets or [])):
            listening.close()
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        deadline = asyncio.get_running_loop().time() + self._grace
        last_words = min(_LAST_WORDS, self._grace / 2)
        await self._emptied(self._grace - last_words)
        for each in self._open_connections():
            each.conclude()
        await self._emptied(last_words)
        for each in self._open_connections():
            each.abort()
        if self.server_state.tasks:  # of clients that left while their models were loading
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            _, late = await asyncio.wait(self.server_state.tasks, timeout=left)
            for task in late:
                task.cancel()
        self._context.close()

    def drain(self) -> None:
        """Close each connection behind its next answer: the server is about to stop."""
        self._context.draining = True
        for each in self._open_connections():
            each.drain()

    async def without_connections(self) -> None:
        """Return as soon as no connection is open."""
        if self.server_state.connections:
            self._empty.clear()
            await self._empty.wait()

    async def _emptied(self, within: float) -> None:
        """Return when there are no connections any more, or after so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.without_connections(), within)

    def _open_connections(self) -> list[HttpProtocol]:
        open_ones: list[object] = list(self.server_state.connections)
        return [each for each in open_ones if isinstance(each, HttpProtocol)]

    def _lost(self) -> None:
        if not self.server_state.connections:
            self._empty.set()

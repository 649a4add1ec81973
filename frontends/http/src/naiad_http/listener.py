"""Listener: a uvicorn server on a running event loop, with our sockets and without signal handlers."""

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
"""The event loop's timeout of a TLS shutdown: practically none, because each connection has its own watchdog."""
_ACCEPTED_PER_TURN = 16
"""The number of watched descriptors of the listening socket: libuv accepts one connection for each in a turn.

With one, 34 new clients a second were accepted while 2,000 clients were refused.
"""
_CONCLUSION_SECONDS = 0.5
"""This long before the end of its grace period a stopping listener answers the requests in flight with an error."""


class Listener(uvicorn.Server):
    """One uvicorn server. `listening` is set when it accepts connections; `end` makes `serve` return.

    uvicorn polls ten times a second whether it must end and whether its connections have ended; this class waits for
    events, so that it uses no CPU while idle and ends without delay.
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
        """Accept no new connections, give requests in flight `grace` seconds, then close their connections."""
        self._grace = grace
        self._ending.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the owner of the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and set `listening`."""
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
        """Update the Date header each second until the end."""
        while not self._ending.is_set():
            await self.on_tick(0)
            headers = self.server_state.default_headers
            self._context.date = b"".join(b"%b: %b\r\n" % (name.title(), value) for name, value in headers)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _SECOND)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listening sockets, and every connection as soon as its request is answered."""
        for server in self.servers:
            server.close()
        for listening in (*self._descriptors, *(sockets or [])):
            listening.close()
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        deadline = asyncio.get_running_loop().time() + self._grace
        conclusion = min(_CONCLUSION_SECONDS, self._grace / 2)
        await self._wait_until_empty(self._grace - conclusion)
        for each in self._open_connections():
            each.conclude()
        await self._wait_until_empty(conclusion)
        for each in self._open_connections():
            each.abort()
        if self.server_state.tasks:  # of clients that disconnected while their models were loading
            remaining = max(0.0, deadline - asyncio.get_running_loop().time())
            _, late = await asyncio.wait(self.server_state.tasks, timeout=remaining)
            for task in late:
                task.cancel()
        self._context.close()

    def drain(self) -> None:
        """Close each connection after its next response: the server is about to stop."""
        self._context.draining = True
        for each in self._open_connections():
            each.drain()

    async def without_connections(self) -> None:
        """Return as soon as no connection is open."""
        if self.server_state.connections:
            self._empty.clear()
            await self._empty.wait()

    async def _wait_until_empty(self, timeout: float) -> None:  # noqa: ASYNC109 - not an error when it expires
        """Return when no connection is open, or after `timeout` seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.without_connections(), timeout)

    def _open_connections(self) -> list[HttpProtocol]:
        open_ones: list[object] = list(self.server_state.connections)
        return [each for each in open_ones if isinstance(each, HttpProtocol)]

    def _lost(self) -> None:
        if not self.server_state.connections:
            self._empty.set()

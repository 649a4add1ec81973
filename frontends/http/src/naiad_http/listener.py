"""Listener: the embedded server of the HTTP frontend, whose connections are of `HttpProtocol`."""

import asyncio
from contextlib import suppress

import uvicorn

from naiad_http.connection_context import ConnectionContext
from naiad_http.protocol import HttpProtocol
from naiad_kit.frontends.embedded_server import EmbeddedServer

_CONCLUSION_SECONDS = 0.5
"""This long before the end of its grace period a stopping listener answers the requests in flight with an error."""


class Listener(EmbeddedServer):
    """Serves the connections of one context, and keeps the context's Date header."""

    def __init__(self, config: uvicorn.Config, context: ConnectionContext) -> None:
        super().__init__(config, context.limits.head)
        self._context = context

    def date_changed(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep the lines of these headers for the responses that are written without ASGI."""
        self._context.date = b"".join(b"%b: %b\r\n" % (name.title(), value) for name, value in headers)

    async def end_connections(self, grace: float) -> None:
        """Close every connection as soon as its request is answered; the last ones are answered with an error."""
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        deadline = asyncio.get_running_loop().time() + grace
        conclusion = min(_CONCLUSION_SECONDS, grace / 2)
        await self._wait_until_empty(grace - conclusion)
        for each in self._open_connections():
            each.conclude()
        await self._wait_until_empty(conclusion)
        for each in self._open_connections():
            each.abort()
        # of clients that disconnected while their models were loading
        await self.end_tasks(max(0.0, deadline - asyncio.get_running_loop().time()))
        self._context.close()

    def drain(self) -> None:
        """Close each connection after its next response: the server is about to stop."""
        self._context.draining = True
        for each in self._open_connections():
            each.drain()

    async def without_connections(self) -> None:
        """Return as soon as no connection is open."""
        while self.server_state.connections:
            self._context.lost.clear()
            await self._context.lost.wait()

    async def _wait_until_empty(self, timeout: float) -> None:  # noqa: ASYNC109 - not an error when it expires
        """Return when no connection is open, or after `timeout` seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.without_connections(), timeout)

    def _open_connections(self) -> list[HttpProtocol]:
        open_ones: list[object] = list(self.server_state.connections)
        return [each for each in open_ones if isinstance(each, HttpProtocol)]

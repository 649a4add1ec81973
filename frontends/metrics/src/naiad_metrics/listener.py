"""Listener: uvicorn's HTTP protocol on a running event loop and a socket of ours."""

import asyncio
import contextlib
import socket

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from naiad.errors import UnavailableError
from naiad_kit.frontends.addresses import bind_tcp

_KEEP_ALIVE = 75
"""Seconds that an idle connection is kept: longer than the usual interval between scrapes."""


class Listener:
    """Serves an application at one endpoint: `address` and `port`."""

    def __init__(self, server: asyncio.Server, state: ServerState) -> None:
        self.address, self.port = server.sockets[0].getsockname()[:2]
        self._server = server
        self._state = state

    @classmethod
    async def open(cls, application: ASGIApp, address: str, port: int) -> "Listener":
        """Listen, on any free port if `port` is 0.

        Raises UnavailableError if the port is in use or not permitted, InvalidArgumentError for an invalid address.
        """
        config = uvicorn.Config(
            application,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
        )
        config.load()
        state = ServerState()

        def protocol() -> asyncio.Protocol:
            connection: asyncio.Protocol = config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg]
            return connection

        listening = await _socket(address, port)
        return cls(await asyncio.get_running_loop().create_server(protocol, sock=listening), state)

    async def close(self, grace: float) -> None:
        """Accept no new connections, finish requests in flight within `grace` seconds, then close all connections."""
        self._server.close()
        for connection in tuple(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(self._state.tasks, timeout=grace)
            for task in late:
                task.cancel()
        for connection in tuple(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # aborted connections are closed in the next turn of the loop


async def _socket(address: str, port: int) -> socket.socket:
    try:
        listening = await bind_tcp(address, port, "metrics-address")
        with contextlib.ExitStack() as stack:
            stack.enter_context(listening)
            listening.listen()
            listening.setblocking(False)
            stack.pop_all()
    except OSError as error:
        raise UnavailableError(
            f"metrics cannot be served on {address} port {port}: {error.strerror or error}; choose another port "
            "with --metrics-port (0 takes any free one) or another address with --metrics-address, or serve none "
            "with --allow-metrics=false"
        ) from error
    return listening

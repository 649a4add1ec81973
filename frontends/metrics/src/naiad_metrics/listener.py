"""uvicorn's HTTP on a loop that is already running, on a socket made here."""

import asyncio
import contextlib
import socket

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from naiad.errors import UnavailableError
from naiad_kit.frontends.addresses import bind_tcp

_KEEP_ALIVE = 75
"""Seconds for which an idle connection is kept: more than scrapers usually wait between two scrapes."""


class Listener:
    """Serves an application on one address. `address` and `port` are where it listens."""

    def __init__(self, server: asyncio.Server, state: ServerState) -> None:
        self.address, self.port = server.sockets[0].getsockname()[:2]
        self._server = server
        self._state = state

    @classmethod
    async def open(cls, application: ASGIApp, address: str, port: int) -> "Listener":
        """Listen, on any free port when `port` is 0.

        Raises UnavailableError when the port is taken or not ours to take, InvalidArgumentError for a bad address.
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
            made: asyncio.Protocol = config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg]
            return made

        listening = await _socket(address, port)
        return cls(await asyncio.get_running_loop().create_server(protocol, sock=listening), state)

    async def close(self, grace: float) -> None:
        """Take no new connections, answer what was asked within `grace` seconds, then close every connection."""
        self._server.close()
        for connection in tuple(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(self._state.tasks, timeout=grace)
            for task in late:
                task.cancel()
        for connection in tuple(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # connections that were aborted are closed in the next round of the loop


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

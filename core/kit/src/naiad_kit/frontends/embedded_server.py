"""uvicorn on a running event loop: no signal handlers, no polling, an end within a grace period.

Of uvicorn this uses `Config`, `Server` and its `ServerState` by their public names.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import uvicorn

from naiad.errors import InternalError, UnavailableError
from naiad_kit.frontends.addresses import bind_tcp
from naiad_kit.frontends.bounded_connections import BoundedConnections, usual_limits
from naiad_kit.frontends.connection_limits import IDLE_SECONDS

_SECOND = 1.0
_NEVER = 86400.0
"""The event loop's timeout of a TLS shutdown: practically none, because the connections have timeouts of their own."""
_ACCEPTED_PER_TURN = 16
"""The number of watched descriptors of the listening socket: libuv accepts one connection for each in a turn.

With one, 34 new clients a second were accepted while 2,000 clients were refused.
"""


def embedded_config(application: Callable[..., Awaitable[None]], **options: Any) -> uvicorn.Config:
    """The loaded configuration of an embedded server: no logging, signals, WebSockets or lifespan events of uvicorn.

    `options` are further arguments of `uvicorn.Config`.
    """
    config = uvicorn.Config(
        application,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        **options,
    )
    config.load()
    return config


class EmbeddedServer(uvicorn.Server):
    """Serves on one listening socket, from `open` to `close`.

    uvicorn polls ten times a second whether it must end and whether its connections have ended; this class waits for
    events, so that it uses no CPU while idle and ends without delay. A subclass may keep the Date header
    (`date_changed`), and end its connections in its own way (`end_connections`).
    """

    def __init__(self, config: uvicorn.Config, handshake_seconds: float | None = None) -> None:
        """`handshake_seconds` is the timeout of a TLS handshake, None for the event loop's default."""
        super().__init__(config)
        self._handshake = handshake_seconds
        self._listening = asyncio.Event()
        self._ending = asyncio.Event()
        self._grace = 0.0
        self._descriptors: list[socket.socket] = []
        self._serving: asyncio.Task[None] | None = None

    async def open(self, listening: socket.socket) -> None:
        """Serve on a listening socket, which `close` closes; return when connections are accepted.

        Raises InternalError if uvicorn ends before.
        """
        self._serving = asyncio.get_running_loop().create_task(self.serve(sockets=[listening]))
        started = asyncio.ensure_future(self._listening.wait())
        await asyncio.wait((started, self._serving), return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            raise InternalError("the HTTP server ended before it listened") from self._serving.exception()

    async def close(self, grace: float) -> None:
        """Accept no new connections, give requests in flight `grace` seconds, then close their connections."""
        self._grace = grace
        self._ending.set()
        if self._serving is not None:
            await self._serving

    # What a subclass may replace

    def date_changed(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Called each second with the headers that every response has: the Date."""

    async def end_connections(self, grace: float) -> None:
        """Close every connection as soon as its request is answered, and all of them after `grace` seconds."""
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        await self.end_tasks(grace)
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # aborted connections are closed in the next turn of the loop

    async def end_tasks(self, grace: float) -> None:
        """Wait for the tasks of ASGI requests, and cancel those that take longer than `grace` seconds."""
        if self.server_state.tasks:
            _, late = await asyncio.wait(self.server_state.tasks, timeout=grace)
            for task in late:
                task.cancel()

    # What uvicorn calls

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the owner of the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        loop, config = asyncio.get_running_loop(), self.config
        factory: Any = config.http_protocol_class
        make = partial(factory, config=config, server_state=self.server_state, app_state=self.lifespan.state)
        options: dict[str, Any] = {"backlog": config.backlog}
        if config.ssl is not None:
            options |= {"ssl": config.ssl, "ssl_shutdown_timeout": _NEVER, "ssl_handshake_timeout": self._handshake}
        self.servers = []
        for each in sockets or []:
            create = loop.create_unix_server if each.family == socket.AF_UNIX else loop.create_server
            for descriptor in (each, *(each.dup() for _ in range(_ACCEPTED_PER_TURN - 1))):
                self.servers.append(await create(make, sock=descriptor, **options))
                self._descriptors.append(descriptor)
        self.started = True
        self._listening.set()

    async def main_loop(self) -> None:
        """Update the Date header each second until the end."""
        while not self._ending.is_set():
            await self.on_tick(0)
            self.date_changed(self.server_state.default_headers)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _SECOND)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listening sockets, then the connections."""
        for server in self.servers:
            server.close()
        for listening in (*self._descriptors, *(sockets or [])):
            listening.close()
        await self.end_connections(self._grace)


class EmbeddedListener:
    """Serves an application at one endpoint, `address` and `port`: a page of the server with a port of its own."""

    def __init__(self, server: EmbeddedServer, listening: socket.socket) -> None:
        self.address, self.port = listening.getsockname()[:2]
        self._server = server

    @classmethod
    async def open(
        cls, application: Callable[..., Awaitable[None]], address: str, port: int, *, name: str, subject: str
    ) -> "EmbeddedListener":
        """Listen, on any free port if `port` is 0, with the options of the frontend `name` ("metrics").

        Raises UnavailableError, which begins with `subject` ("metrics"), if the port is in use or not permitted, and
        InvalidArgumentError for an invalid address.
        """
        try:
            listening = await bind_tcp(address, port, f"{name}-address")
            with ExitStack() as stack:
                stack.enter_context(listening)
                listening.listen()
                listening.setblocking(False)
                stack.pop_all()
        except OSError as error:
            raise UnavailableError(
                f"{subject} cannot be served on {address} port {port}: {error.strerror or error}; choose another port "
                f"with --{name}-port (0 takes any free one) or another address with --{name}-address, or serve none "
                f"with --allow-{name}=false"
            ) from error
        connections = BoundedConnections(usual_limits())
        watched = connections.watched(application)
        config = embedded_config(watched, timeout_keep_alive=int(IDLE_SECONDS), http=connections.make)
        listener = cls(EmbeddedServer(config), listening)
        await listener._server.open(listening)
        return listener

    async def close(self, grace: float) -> None:
        """Accept no new connections, finish requests in flight within `grace` seconds, then close all connections."""
        await self._server.close(grace)

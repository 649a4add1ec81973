"""Listener: accepts connections on an endpoint, from start to shutdown."""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

from naiad.options import Settings
from naiad_grpc.admission import Admission, default_connections
from naiad_grpc.http2.endpoint import Limits
from naiad_grpc.http2.timers import Timeouts
from naiad_grpc.options import MOST
from naiad_grpc.server.methods import head_cache
from naiad_grpc.server.protocol import GrpcProtocol
from naiad_grpc.server.shared import ListenerContext
from naiad_grpc.service.operations import Operation
from naiad_grpc.unfinished import warn_of_unfinished
from naiad_grpc.wire.compression import LEVELS
from naiad_kit.frontends.addresses import UNIX
from naiad_kit.frontends.api_keys import ApiKeys
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.endpoints import Endpoint, open_endpoint
from naiad_kit.frontends.renewal import CertificateRenewal
from naiad_kit.frontends.tls import load_pair, server_context

_ACCEPTED_PER_TURN = 16
"""The number of watched descriptors of the listening socket: libuv accepts one connection for each in a turn."""
_FLUSH_SECONDS = 0.25
"""Seconds for sending the last bytes when the grace period is over."""
_STREAM_WINDOW = 1 << 20
"""The most bytes that wait in one stream; a message that has begun may exceed it."""
_NEVER = 86400.0
"""The event loop's timeout of a TLS shutdown: practically none, because closed connections are aborted anyway."""


class Listener:
    """Serves these operations, configured by the options."""

    def __init__(
        self,
        operations: Iterable[Operation],
        settings: Settings,
        budget: ByteBudget,
        keys: ApiKeys | None = None,
    ) -> None:
        """Large messages are charged to the `budget`. Raises InvalidArgumentError for an invalid option."""
        self._settings = settings
        self._tls = tls_context(settings)
        self._admission = Admission(settings, keys)
        self._context = ListenerContext(
            loop=asyncio.get_running_loop(),
            admission=self._admission,
            heads=head_cache(operations),
            limits=Limits(
                streams=settings["grpc-max-concurrent-streams"],
                stream_window=min(_STREAM_WINDOW, settings["grpc-connection-window"]),
                window=settings["grpc-connection-window"],
                timeouts=_timeouts(settings),
            ),
            most=settings["grpc-max-message-size"],
            most_sent=settings["grpc-max-response-size"],
            level=LEVELS[settings["grpc-infer-response-compression-level"]],
            budget=budget,
            most_connections=settings["grpc-max-connections"] or default_connections(),
        )
        self._connections = self._context.connections
        self._endpoint: Endpoint | None = None
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._renewing: asyncio.Task[None] | None = None

    @property
    def calls_in_flight(self) -> int:
        """The number of calls in flight."""
        return self._admission.in_flight

    async def start(self) -> str:
        """Listen, and return the target for clients: `127.0.0.1:8001`, `unix:/run/naiad.sock`.

        Raises UnavailableError if the endpoint is not available and InvalidArgumentError for an invalid address.
        """
        settings = self._settings
        endpoint = await open_endpoint(
            "gRPC", settings["grpc-address"], settings["grpc-port"], settings["reuse-grpc-port"]
        )
        self._endpoint = endpoint
        loop = asyncio.get_running_loop()
        make = partial(GrpcProtocol, self._context)
        tls: dict[str, Any] = {}
        if self._tls is not None:
            tls = {"ssl": self._tls, "ssl_handshake_timeout": self._context.limits.timeouts.handshake}
            tls["ssl_shutdown_timeout"] = _NEVER
        create: Any = loop.create_unix_server if endpoint.target.startswith(UNIX) else loop.create_server
        self._sockets = [endpoint.listening, *(endpoint.listening.dup() for _ in range(_ACCEPTED_PER_TURN - 1))]
        for each in self._sockets:
            self._servers.append(await create(make, sock=each, **tls))
        if self._tls is not None:
            renewal = CertificateRenewal(settings, "gRPC")
            self._renewing = loop.create_task(renewal.follow(partial(load_pair, self._tls)))
        return endpoint.target

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let those in flight end within `grace` seconds, then close every connection.

        A call is in flight until its client has taken the answer.
        """
        context, loop = self._context, self._context.loop
        deadline = loop.time() + grace
        self._admission.end()
        if self._renewing is not None:
            self._renewing.cancel()
        for connection in tuple(self._connections):
            connection.drain()
        try:
            await asyncio.wait_for(self._admission.drained(), grace)
        except TimeoutError:
            in_flight = [call for each in self._connections for call in each.calls.values()]
            warn_of_unfinished([call.unfinished() for call in in_flight], grace)
        for server in self._servers:
            server.close()
        for each in self._sockets:
            each.close()
        if self._endpoint is not None:
            self._endpoint.close()
        for connection in tuple(self._connections):
            connection.close()
        await asyncio.sleep(0)  # they write at the end of this turn of the event loop
        context.sent.clear()
        if context.sending:
            with suppress(TimeoutError):
                await asyncio.wait_for(context.sent.wait(), max(_FLUSH_SECONDS, deadline - loop.time()))
        context.empty.clear()
        if self._connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(context.empty.wait(), _FLUSH_SECONDS)
        for connection in tuple(self._connections):
            connection.abort()
        context.threads.close()


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context of the options, None for plain connections. Raises InvalidArgumentError."""
    context = server_context(settings, "gRPC")
    if context is not None:
        context.set_alpn_protocols(["h2"])
    return context


def _timeouts(settings: Settings) -> Timeouts:
    """The timeouts of connections in seconds; the largest number of milliseconds means none."""

    def seconds(option: str) -> float:
        milliseconds: int = settings[option]
        return inf if milliseconds >= MOST else milliseconds / 1000

    return Timeouts(
        handshake=seconds("grpc-handshake-timeout"),
        idle=seconds("grpc-max-connection-idle"),
        age=seconds("grpc-max-connection-age"),
        age_grace=seconds("grpc-max-connection-age-grace"),
        keepalive=seconds("grpc-keepalive-time"),
        keepalive_timeout=seconds("grpc-keepalive-timeout"),
        keepalive_without_calls=settings["grpc-keepalive-permit-without-calls"],
        most_pings=settings["grpc-http2-max-pings-without-data"],
        least_ping_interval=seconds("grpc-http2-min-recv-ping-interval-without-data"),
        most_ping_strikes=settings["grpc-http2-max-ping-strikes"],
    )

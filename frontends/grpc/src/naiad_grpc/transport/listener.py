"""Listener: the servers of `grpc.aio` that share one port, from start to shutdown.

One such server handles one new call per turn of its event loop, so that requests reach their model's queue one by one.
Several servers that share the port handle as many per turn: 16 and 64 concurrent requests of a batching model became
1.4 and 1.8 times as fast with eight servers, and 64 another 7 to 18 % with sixteen.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

import grpc

from naiad.options import Settings
from naiad_grpc.service.operations import Operation
from naiad_grpc.transport.accepting import concurrent_accepts
from naiad_grpc.transport.addresses import reserved_target
from naiad_grpc.transport.arguments import channel_arguments
from naiad_grpc.transport.credentials import server_certificates
from naiad_grpc.transport.handlers import Handlers
from naiad_grpc.transport.waking import pipe_wakeups
from naiad_kit.frontends.addresses import UNIX, cannot_listen
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.renewal import CertificateRenewal

_ACCEPTORS = 16
"""The number of servers that share a port. The operating system gives each new connection to one of them."""

_FLUSH_SECONDS = 0.25
"""Seconds for sending the last bytes when the grace period is over."""


class Listener:
    """Serves these operations, configured by the options."""

    def __init__(self, operations: Iterable[Operation], settings: Settings, budget: ByteBudget) -> None:
        """Large messages are charged to the `budget`. Raises InvalidArgumentError for an invalid option."""
        logging.getLogger("grpc._cython.cygrpc").addFilter(is_worth_a_record)
        self._settings = settings
        self._certificates = server_certificates(settings)
        self._renewing: asyncio.Task[None] | None = None
        self._handlers = Handlers(operations, settings, budget)
        count = _acceptors(settings)
        arguments = channel_arguments(settings, count)
        with pipe_wakeups(), concurrent_accepts():
            self._servers = [grpc.aio.server(options=arguments) for _ in range(count)]
        for server in self._servers:
            server.add_generic_rpc_handlers((self._handlers,))

    @property
    def calls_in_flight(self) -> int:
        """The number of calls in flight."""
        return self._handlers.calls_in_flight

    async def start(self) -> str:
        """Listen, and return the target for clients: `127.0.0.1:8001`, `unix:/run/naiad.sock`.

        Raises UnavailableError if the endpoint is not available and InvalidArgumentError for an invalid address.
        """
        address: str = self._settings["grpc-address"]
        port: int = self._settings["grpc-port"]
        try:
            async with reserved_target(address, port, self._settings["reuse-grpc-port"]) as target:
                self._bind(target, self._servers[0])
            for server in self._servers[1:]:
                self._bind(target, server)
        except RuntimeError as error:  # another server has taken it meanwhile
            raise cannot_listen("gRPC", address, port, "gRPC could not bind to it") from error
        for server in self._servers:
            await server.start()
        if self._certificates is not None:
            renewal = CertificateRenewal(self._settings, "gRPC")
            self._renewing = asyncio.get_running_loop().create_task(renewal.follow(self._certificates.renew))
        return target

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let those in flight end within `grace` seconds, then close every connection."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        self._handlers.end()
        if self._renewing is not None:
            self._renewing.cancel()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._handlers.drained(), grace)
        remaining = max(_FLUSH_SECONDS, deadline - loop.time())
        await asyncio.gather(*(server.stop(remaining) for server in self._servers))

    def _bind(self, target: str, server: grpc.aio.Server) -> None:
        if self._certificates is None:
            server.add_insecure_port(target)
        else:
            server.add_secure_port(target, self._certificates.credentials())


def is_worth_a_record(record: logging.LogRecord) -> bool:
    """Whether a log record of grpcio is useful: not that a caller disconnected or timed out during its response."""
    return not record.getMessage().startswith("ExecuteBatchError raised in core by servicer method")


def _acceptors(settings: Settings) -> int:
    """The number of servers: one on a unix socket, which cannot be shared."""
    return 1 if settings["grpc-address"].startswith(UNIX) else _ACCEPTORS

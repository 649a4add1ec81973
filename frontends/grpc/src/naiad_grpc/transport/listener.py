"""Servers of `grpc.aio` on one port, from when they take it to the last call.

One such server handles one new call a round of its event loop, however many there are, so that requests reach their
model's queue one by one. Several servers that share the port handle as many a round: 16 and 64 concurrent requests of
a batching model became 1.4 and 1.8 times as fast with eight, and 64 another 7 to 18 % with sixteen.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

import grpc

from naiad.byte_budget import ByteBudget
from naiad.options import Settings
from naiad_grpc.service.operations import Operation
from naiad_grpc.transport.accepting import taking_in_what_has_come
from naiad_grpc.transport.addresses import reserved_target
from naiad_grpc.transport.arguments import channel_arguments
from naiad_grpc.transport.credentials import server_certificates
from naiad_grpc.transport.handlers import Handlers
from naiad_grpc.transport.waking import woken_by_a_pipe
from naiad_kit.frontends.addresses import UNIX, cannot_listen
from naiad_kit.frontends.renewal import CertificateRenewal

_ACCEPTORS = 16
"""How many servers share a port. The kernel gives each new connection to one of them."""

_LAST_WORDS = 0.25
"""Seconds in which the last bytes may go out, where the grace is over."""


class Listener:
    """Serves these operations as the options say."""

    def __init__(self, operations: Iterable[Operation], settings: Settings, budget: ByteBudget) -> None:
        """Large messages are charged to the `budget`. Raises InvalidArgumentError for an invalid option."""
        logging.getLogger("grpc._cython.cygrpc").addFilter(is_worth_a_record)
        self._settings = settings
        self._certificates = server_certificates(settings)
        self._renewing: asyncio.Task[None] | None = None
        self._handlers = Handlers(operations, settings, budget)
        count = _acceptors(settings)
        arguments = channel_arguments(settings, count)
        with woken_by_a_pipe(), taking_in_what_has_come():
            self._servers = [grpc.aio.server(options=arguments) for _ in range(count)]
        for server in self._servers:
            server.add_generic_rpc_handlers((self._handlers,))

    @property
    def calls_in_flight(self) -> int:
        """How many calls have begun and not ended."""
        return self._handlers.calls_in_flight

    async def start(self) -> str:
        """Listen, and say where, as clients want it: `127.0.0.1:8001`, `unix:/run/naiad.sock`.

        Raises UnavailableError when the place cannot be had and InvalidArgumentError for a bad address.
        """
        address: str = self._settings["grpc-address"]
        port: int = self._settings["grpc-port"]
        try:
            async with reserved_target(address, port, self._settings["reuse-grpc-port"]) as target:
                self._bind(target, self._servers[0])
            for server in self._servers[1:]:
                self._bind(target, server)
        except RuntimeError as error:  # a server that is not ours took it since
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
        left = max(_LAST_WORDS, deadline - loop.time())
        await asyncio.gather(*(server.stop(left) for server in self._servers))

    def _bind(self, target: str, server: grpc.aio.Server) -> None:
        if self._certificates is None:
            server.add_insecure_port(target)
        else:
            server.add_secure_port(target, self._certificates.credentials())


def is_worth_a_record(record: logging.LogRecord) -> bool:
    """Whether a record of grpcio is worth a line: not that a caller left, or timed out, while it was answered."""
    return not record.getMessage().startswith("ExecuteBatchError raised in core by servicer method")


def _acceptors(settings: Settings) -> int:
    """A unix socket cannot be shared."""
    return 1 if settings["grpc-address"].startswith(UNIX) else _ACCEPTORS

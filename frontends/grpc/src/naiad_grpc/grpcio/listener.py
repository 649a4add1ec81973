"""Listener: a server of `grpc.aio`, from start to shutdown."""

import asyncio
import logging
from collections.abc import Iterable

import grpc

from naiad.options import Settings
from naiad_grpc.grpcio.arguments import channel_arguments
from naiad_grpc.grpcio.credentials import server_certificates
from naiad_grpc.grpcio.handlers import Handlers
from naiad_grpc.service.operations import Operation
from naiad_grpc.unfinished import warn_of_unfinished
from naiad_kit.frontends.addresses import cannot_listen
from naiad_kit.frontends.api_keys import ApiKeys
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.endpoints import open_endpoint
from naiad_kit.frontends.renewal import CertificateRenewal

_FLUSH_SECONDS = 0.25
"""Seconds for the end of connections when no call is in flight, or the grace period is over."""
_FREE_PORTS = 8
"""The number of free ports that are tried for port 0."""


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
        logging.getLogger("grpc._cython.cygrpc").addFilter(is_worth_a_record)
        self._settings = settings
        self._certificates = server_certificates(settings)
        self._renewing: asyncio.Task[None] | None = None
        self._handlers = Handlers(operations, settings, budget, keys)
        self._server = grpc.aio.server(options=channel_arguments(settings))
        self._server.add_generic_rpc_handlers((self._handlers,))

    @property
    def calls_in_flight(self) -> int:
        """The number of calls in flight."""
        return self._handlers.calls_in_flight

    async def start(self) -> str:
        """Listen, and return the target for clients: `127.0.0.1:8001`, `unix:/run/naiad.sock`.

        grpcio itself reports only that it could not bind: so the endpoint is opened and closed before. Another process
        may take it in between; then another free port is as good. Raises UnavailableError if the endpoint is not
        available and InvalidArgumentError for an invalid address.
        """
        address, port, share = (self._settings[name] for name in ("grpc-address", "grpc-port", "reuse-grpc-port"))
        for rest in reversed(range(1 if port else _FREE_PORTS)):
            endpoint = await open_endpoint("gRPC", address, port, share)
            endpoint.close()
            target = endpoint.target
            try:
                self._bind(target)
                break
            except RuntimeError as error:
                if not rest:
                    raise cannot_listen("gRPC", address, port, "gRPC could not bind to it") from error
        await self._server.start()
        if self._certificates is not None:
            renewal = CertificateRenewal(self._settings, "gRPC")
            self._renewing = asyncio.get_running_loop().create_task(renewal.follow(self._certificates.renew))
        return target

    def _bind(self, target: str) -> None:
        """Raises RuntimeError where another server has taken the endpoint."""
        if self._certificates is None:
            self._server.add_insecure_port(target)
        else:
            self._server.add_secure_port(target, self._certificates.credentials())

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let those in flight end within `grace` seconds, then close every connection."""
        self._handlers.end()
        if self._renewing is not None:
            self._renewing.cancel()
        try:
            await asyncio.wait_for(self._handlers.drained(), grace)
        except TimeoutError:
            warn_of_unfinished(self._handlers.unfinished(), grace)
        # grpcio waits for clients to answer a PING, and up to 20 s for one that keeps silent; all answers are sent here
        await self._server.stop(_FLUSH_SECONDS)


def is_worth_a_record(record: logging.LogRecord) -> bool:
    """Whether a log record of grpcio is useful: not that a caller disconnected or timed out during its response."""
    return not record.getMessage().startswith("ExecuteBatchError raised in core by servicer method")

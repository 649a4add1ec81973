"""RPCs of health: liveness and readiness by the inference protocol, and by the standard health service."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from naiad.errors import ModelNotReadyError, NotFoundError
from naiad_grpc.codec.versions import model_of
from naiad_grpc.messages import HEALTH_PACKAGE, HEALTH_SERVICE, SERVICES, message_class
from naiad_grpc.service.operations import Operation, operation, stream, unary
from naiad_grpc.service.readiness import ReadinessPoll
from naiad_grpc.statuses import Code, RpcError

if TYPE_CHECKING:
    from naiad.server import ServerApi

WATCH_SECONDS = 1.0
"""How often readiness is checked while it is watched: it depends on models and instances, which report no changes."""

_HEALTH_NAMES = ("", *SERVICES)
"""The names of services whose health is that of the server; "" is the server as a whole."""


class HealthRpcs:
    """Liveness and readiness. `stopping` is set when the frontend begins to stop."""

    def __init__(self, server: "ServerApi", stopping: asyncio.Event, watch_seconds: float = WATCH_SECONDS) -> None:
        self._server = server
        self._stopping = stopping
        self._watch_seconds = watch_seconds
        self._response = message_class("HealthCheckResponse", HEALTH_PACKAGE)
        self._poll = ReadinessPoll(lambda: server.ready().ready, stopping, self._pause)

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        request = message_class("HealthCheckRequest", HEALTH_PACKAGE)
        return [
            operation("ServerLive", "health", self.server_live),
            operation("ServerReady", "health", self.server_ready),
            operation("ModelReady", "health", self.model_ready),
            unary(f"/{HEALTH_SERVICE}/Check", "health", request, self.check),
            stream(f"/{HEALTH_SERVICE}/Watch", "health", request, self.watch),
        ]

    async def server_live(self, _request: Any) -> Any:
        """Whether the server runs."""
        return message_class("ServerLiveResponse")(live=self._server.live())

    async def server_ready(self, _request: Any) -> Any:
        """Whether the server and its models can serve."""
        return message_class("ServerReadyResponse")(ready=self._server.ready().ready)

    async def model_ready(self, request: Any) -> Any:
        """Whether a model can serve. A model that is unknown, failed or unloaded is not ready, which is no error."""
        name, version = model_of(request)
        try:
            ready = self._server.model_ready(name, version).ready
        except (NotFoundError, ModelNotReadyError):
            ready = False
        return message_class("ModelReadyResponse")(ready=ready)

    async def check(self, request: Any) -> Any:
        """SERVING if the server is ready. Raises RpcError with NOT_FOUND for a service that is not served."""
        if request.service not in _HEALTH_NAMES:
            raise RpcError(Code.NOT_FOUND, f"there is no service '{request.service}'; leave it out for the server")
        return self._status(self._server.ready().ready and not self._stopping.is_set())

    async def watch(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """The status now and whenever it changes, until the frontend stops.

        That of a service that is not served is SERVICE_UNKNOWN all the time, as the health checking protocol has it.
        """
        service = ""
        async for request in requests:
            service = request.service
            break
        if service not in _HEALTH_NAMES:
            yield self._response(status="SERVICE_UNKNOWN")
            await self._stopping.wait()
            return
        async with aclosing(self._poll.watch()) as changes:
            async for serves in changes:
                yield self._status(serves)

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), self._watch_seconds)

    def _status(self, serves: bool) -> Any:
        return self._response(status="SERVING" if serves else "NOT_SERVING")

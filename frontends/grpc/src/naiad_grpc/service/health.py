"""RPCs of health: liveness and readiness by the inference protocol, and by the standard health service."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from naiad_grpc.codec.versions import model_of
from naiad_grpc.messages import HEALTH_PACKAGE, HEALTH_SERVICE, message_class
from naiad_grpc.service.operations import Operation, operation, stream, unary
from naiad_grpc.service.readiness import ReadinessPoll

if TYPE_CHECKING:
    from naiad.server import ServerApi

WATCH_SECONDS = 1.0
"""How often readiness is checked while it is watched: it depends on models and instances, which report no changes."""


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
        """Whether a model can serve. Raises NotFoundError or ModelNotReadyError for an unknown model."""
        return message_class("ModelReadyResponse")(ready=self._server.model_ready(*model_of(request)).ready)

    async def check(self, _request: Any) -> Any:
        """SERVING if the server is ready, for every service name."""
        return self._status(self._server.ready().ready and not self._stopping.is_set())

    async def watch(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """The status now and whenever it changes, until the frontend stops, for every service name."""
        async for _ in requests:
            break
        async with aclosing(self._poll.watch()) as changes:
            async for serves in changes:
                yield self._status(serves)

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), self._watch_seconds)

    def _status(self, serves: bool) -> Any:
        return self._response(status="SERVING" if serves else "NOT_SERVING")

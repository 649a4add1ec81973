"""The gRPC frontend: starts and stops its listener with the server."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from naiad_kit.frontends.addresses import UNIX
from naiad_kit.frontends.api_keys import api_keys_of
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.forking import keep_from_children
from naiad_kit.frontends.ports import refuse_shared_ports

if TYPE_CHECKING:
    from naiad.server import ServerApi
    from naiad_kit.frontends.embedding import Rpc, StreamRpc


class Listener(Protocol):
    """A transport: what speaks gRPC to clients, from start to shutdown."""

    async def start(self) -> str:
        """Listen, and return the target for clients. Raises UnavailableError or InvalidArgumentError."""
        ...

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let those in flight end within `grace` seconds, then close every connection."""
        ...


class GrpcFrontend:
    """Serves the Open Inference Protocol over gRPC. `target` is its endpoint for clients, set once it listens."""

    name = "grpc"

    def __init__(self) -> None:
        self.target = ""
        self._stopping = asyncio.Event()
        self._listener: Listener | None = None
        self._share: Callable[[], None] = lambda: None

    async def start(self, server: "ServerApi") -> str:
        """Listen as configured by the options, and return the URL; "" with `--allow-grpc=false`.

        Raises UnavailableError if the endpoint is not available and InvalidArgumentError for an invalid option.
        """
        settings = server.settings
        if not settings["allow-grpc"]:
            return ""
        refuse_shared_ports(settings)
        listener = _make_listener(server, self._stopping)
        self.target = await listener.start()
        self._listener = listener
        is_path = self.target.startswith(UNIX)
        self._share = keep_from_children(
            self.target.removeprefix(UNIX) if is_path else int(self.target.rpartition(":")[2])
        )
        return self.target if is_path else f"grpc://{self.target}"

    def rpcs(self, server: "ServerApi") -> "Sequence[Rpc | StreamRpc]":
        """See `EmbeddedGrpc`: the RPCs without this frontend's listener."""
        from naiad_grpc.catalogue import operations
        from naiad_grpc.embedded import embedded_rpcs

        return embedded_rpcs(operations(server, self._stopping), server.settings, api_keys_of(server))

    async def stop(self, grace: float) -> None:
        """Refuse new calls, finish calls in flight within `grace` seconds, then close all connections."""
        self._stopping.set()
        if self._listener is not None:
            await self._listener.stop(grace)
            self._share()
            self._listener = None


def _make_listener(server: "ServerApi", stopping: asyncio.Event) -> Listener:
    """The listener of the transport that the options name. protobuf, hpack and grpcio are imported here."""
    from naiad_grpc.catalogue import operations

    settings, keys = server.settings, api_keys_of(server)
    if settings["grpc-transport"] == "naiad":
        from naiad_grpc.server import listener as naiad

        return naiad.Listener(operations(server, stopping), settings, server.service(ByteBudget), keys)
    # grpcio's core reads this when it is imported. It writes bytes of clients to stderr, which could forge lines of our
    # log, and filled a disk with 458 MB in three seconds.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from naiad_grpc.grpcio import listener as grpcio

    return grpcio.Listener(operations(server, stopping), settings, server.service(ByteBudget), keys)

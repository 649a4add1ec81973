"""The gRPC frontend: starts and stops its listener with the server."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from naiad_kit.frontends.addresses import UNIX
from naiad_kit.frontends.forking import keep_from_children
from naiad_kit.frontends.ports import refuse_shared_ports

if TYPE_CHECKING:
    from naiad.server import ServerApi
    from naiad_grpc.transport.listener import Listener


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
        from naiad_grpc.transport.experiments import choose_polling, silence_core

        choose_polling()  # before grpcio is imported, which looks at it then
        silence_core()
        from naiad_grpc.catalogue import operations  # grpcio and protobuf take 0.1 s to import
        from naiad_grpc.transport.listener import Listener

        listener = Listener(operations(server, self._stopping), settings, server.bytes_in_flight)
        self.target = await listener.start()
        self._listener = listener
        is_path = self.target.startswith(UNIX)
        self._share = keep_from_children(
            self.target.removeprefix(UNIX) if is_path else int(self.target.rpartition(":")[2])
        )
        return self.target if self.target.startswith("unix:") else f"grpc://{self.target}"

    async def stop(self, grace: float) -> None:
        """Refuse new calls, finish calls in flight within `grace` seconds, then close all connections."""
        self._stopping.set()
        if self._listener is not None:
            await self._listener.stop(grace)
            self._share()
            self._listener = None

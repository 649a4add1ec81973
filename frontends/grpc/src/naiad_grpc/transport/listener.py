"""One server of `grpc.aio`, from the port it takes to its last call."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import grpc

from naiad.options import Settings
from naiad.protocol.addresses import UNIX, cannot_listen
from naiad_grpc.service.operations import Operation
from naiad_grpc.transport.addresses import find_place
from naiad_grpc.transport.arguments import channel_arguments
from naiad_grpc.transport.credentials import server_credentials
from naiad_grpc.transport.handlers import Handlers

_LAST_WORDS = 0.25
"""Seconds in which the last bytes may go out, where the grace is over."""


class Listener:
    """Serves these operations as the options say."""

    def __init__(self, operations: Iterable[Operation], settings: Settings) -> None:
        """Raises InvalidArgumentError for an option that makes no sense."""
        self._settings = settings
        self._credentials = server_credentials(settings)
        self._handlers = Handlers(operations, settings["grpc-restricted-protocol"])
        self._server = grpc.aio.server(options=channel_arguments(settings))
        self._server.add_generic_rpc_handlers((self._handlers,))

    async def start(self) -> str:
        """Listen, and say where, as clients want it: `127.0.0.1:8001`, `unix:/run/naiad.sock`.

        Raises UnavailableError when the place cannot be had and InvalidArgumentError for a bad address.
        """
        address: str = self._settings["grpc-address"]
        port: int = self._settings["grpc-port"]
        place = await find_place(address, port, self._settings["reuse-grpc-port"])
        try:
            bound = self._bind(place)
        except RuntimeError as error:  # somebody took it since
            raise cannot_listen("gRPC", address, port, "gRPC could not bind to it") from error
        await self._server.start()
        return place if place.startswith(UNIX) else f"{place.rpartition(':')[0]}:{bound}"

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let those in flight end within `grace` seconds, then close every connection."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        self._handlers.end()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._handlers.drained(), grace)
        await self._server.stop(max(_LAST_WORDS, deadline - loop.time()))

    def _bind(self, place: str) -> int:
        if self._credentials is None:
            return int(self._server.add_insecure_port(place))
        return int(self._server.add_secure_port(place, self._credentials))

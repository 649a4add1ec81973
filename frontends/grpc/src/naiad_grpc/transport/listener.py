"""Servers of `grpc.aio` on one port, from when they take it to the last call.

One such server handles one new call a round of its event loop, however many there are, so that requests reach their
model's queue one by one. Several servers that share the port handle as many a round: 16 and 64 concurrent requests of
a batching model became 1.4 and 1.8 times as fast with eight, and 64 another 7 to 18 % with sixteen.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import grpc

from naiad.options import Settings
from naiad.protocol.addresses import UNIX, cannot_listen
from naiad_grpc.service.operations import Operation
from naiad_grpc.transport.accepting import taking_in_what_has_come
from naiad_grpc.transport.addresses import find_place
from naiad_grpc.transport.arguments import channel_arguments
from naiad_grpc.transport.credentials import server_credentials
from naiad_grpc.transport.handlers import Handlers
from naiad_grpc.transport.waking import woken_by_a_pipe

_ACCEPTORS = 16
"""How many servers share a port. The kernel gives each new connection to one of them."""

_LAST_WORDS = 0.25
"""Seconds in which the last bytes may go out, where the grace is over."""


class Listener:
    """Serves these operations as the options say."""

    def __init__(self, operations: Iterable[Operation], settings: Settings) -> None:
        """Raises InvalidArgumentError for an option that makes no sense."""
        self._settings = settings
        self._credentials = server_credentials(settings)
        self._handlers = Handlers(operations, settings["grpc-restricted-protocol"])
        with woken_by_a_pipe(), taking_in_what_has_come():
            self._servers = [grpc.aio.server(options=channel_arguments(settings)) for _ in range(_acceptors(settings))]
        for server in self._servers:
            server.add_generic_rpc_handlers((self._handlers,))

    async def start(self) -> str:
        """Listen, and say where, as clients want it: `127.0.0.1:8001`, `unix:/run/naiad.sock`.

        Raises UnavailableError when the place cannot be had and InvalidArgumentError for a bad address.
        """
        address: str = self._settings["grpc-address"]
        port: int = self._settings["grpc-port"]
        place = await find_place(address, port, self._settings["reuse-grpc-port"])
        try:
            bound = self._bind(place, self._servers[0])
            place = place if place.startswith(UNIX) else f"{place.rpartition(':')[0]}:{bound}"
            for server in self._servers[1:]:
                self._bind(place, server)
        except RuntimeError as error:  # somebody took it since
            raise cannot_listen("gRPC", address, port, "gRPC could not bind to it") from error
        for server in self._servers:
            await server.start()
        return place

    async def stop(self, grace: float) -> None:
        """Refuse new calls, let those in flight end within `grace` seconds, then close every connection."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        self._handlers.end()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._handlers.drained(), grace)
        left = max(_LAST_WORDS, deadline - loop.time())
        await asyncio.gather(*(server.stop(left) for server in self._servers))

    def _bind(self, place: str, server: grpc.aio.Server) -> int:
        if self._credentials is None:
            return int(server.add_insecure_port(place))
        return int(server.add_secure_port(place, self._credentials))


def _acceptors(settings: Settings) -> int:
    """A unix socket cannot be shared."""
    return 1 if settings["grpc-address"].startswith(UNIX) else _ACCEPTORS

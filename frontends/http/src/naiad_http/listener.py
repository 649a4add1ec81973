"""uvicorn inside a loop that is already running: no loop and no signal handlers of its own, sockets made here."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from naiad.errors import InvalidArgumentError, NaiadError, UnavailableError
from naiad_http.protocol import HttpProtocol
from naiad_http.site import Site


class Listener(uvicorn.Server):
    """One uvicorn server; `listening` is set when it takes connections."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._site = site

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to who owns the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets=sockets)
        self.listening.set()

    async def on_tick(self, counter: int) -> bool:
        """What uvicorn does ten times a second, among it the Date header, which our own answers carry too."""
        ends = await super().on_tick(counter)
        self._site.date = b"".join(
            b"%b: %b\r\n" % (name.title(), value) for name, value in self.server_state.default_headers
        )
        return ends

    def abort_connections(self) -> None:
        """Close what is still open, whatever it is doing."""
        open_ones: list[object] = list(self.server_state.connections)
        for connection in open_ones:
            if isinstance(connection, HttpProtocol):
                connection.abort()


async def open_socket(address: str, port: int, share: bool) -> socket.socket:
    """A socket bound to that address and port, 0 for any free one; with `share` others may bind to it too.

    Raises UnavailableError when the port is taken or not ours to take, InvalidArgumentError for a bad address.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise InvalidArgumentError(
            f"--http-address: '{address}' is no address of this machine: {error.strerror or error}"
        ) from error
    family, kind, protocol, _, place = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(place)
        listening.listen()
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _refused(address, port, error) from error
    return listening


def _refused(address: str, port: int, error: OSError) -> NaiadError:
    return UnavailableError(
        f"HTTP cannot listen on {address} port {port}: {error.strerror or error}; "
        "choose another port with --http-port (0 takes any free one) or another address with --http-address"
    )

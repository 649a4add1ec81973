"""Endpoint of a frontend: a listening socket at a TCP address, or a unix socket and its file."""

import socket
from dataclasses import dataclass
from pathlib import Path

from naiad_kit.frontends.addresses import UNIX, bind_tcp, cannot_listen, host_of, is_left_over, unix_path


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listening socket and its `address` and `port`, or `unix:PATH` and 0. `close` it after use."""

    listening: socket.socket
    address: str
    port: int = 0
    inode: int = 0

    def url(self, scheme: str) -> str:
        """The URL of the endpoint; `unix:PATH` for a unix socket."""
        return self.target if self.address.startswith(UNIX) else f"{scheme}://{self.target}"

    @property
    def target(self) -> str:
        """The endpoint as gRPC writes it: `127.0.0.1:8001`, `[::1]:8001`, `unix:/run/naiad.sock`."""
        return self.address if self.address.startswith(UNIX) else f"{host_of(self.address)}:{self.port}"

    def close(self) -> None:
        """Close the socket and remove the file of a unix socket, unless another server has replaced the file."""
        self.listening.close()
        if self.inode:
            path = Path(self.address.removeprefix(UNIX))
            if path.exists() and path.stat().st_ino == self.inode:
                path.unlink()


async def open_endpoint(protocol: str, address: str, port: int, share: bool) -> Endpoint:
    """An endpoint at that address and port, 0 for any free one; with `share` other servers may listen there too.

    `protocol` ("HTTP", "gRPC") names the options in errors.
    Raises UnavailableError if it is in use or not permitted, InvalidArgumentError for an invalid address.
    """
    if address.startswith(UNIX):
        return _open_unix(protocol, address)
    try:
        listening = await bind_tcp(address, port, f"{protocol.lower()}-address", share)
        _listen(listening)
    except OSError as error:
        raise cannot_listen(protocol, address, port, error) from error
    return Endpoint(listening, *listening.getsockname()[:2])


def _open_unix(protocol: str, address: str) -> Endpoint:
    """A unix socket at that path. The umask decides who may connect, as for any other file."""
    path = unix_path(address, f"{protocol.lower()}-address")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if is_left_over(path):
            path.unlink()
        listening.bind(str(path))
        _listen(listening)
        return Endpoint(listening, address, inode=path.stat().st_ino)
    except OSError as error:
        listening.close()
        raise cannot_listen(protocol, address, 0, error) from error


def _listen(bound: socket.socket) -> None:
    """Listen. Raises OSError, with the socket closed, if another server was faster."""
    try:
        bound.listen()
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)

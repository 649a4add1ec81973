"""The place where this frontend listens: a TCP address, or a unix socket and its file."""

import socket
from dataclasses import dataclass
from pathlib import Path

from naiad_kit.frontends.addresses import UNIX, bind_tcp, cannot_listen, host_of, is_left_over, unix_path

_OPTION = "http-address"


@dataclass(frozen=True, slots=True)
class Place:
    """A socket that listens, and where: `address` and `port`, or `unix:PATH` and 0. Give it back with `leave`."""

    listening: socket.socket
    address: str
    port: int = 0
    inode: int = 0

    def url(self, scheme: str) -> str:
        """The place in words."""
        if self.address.startswith(UNIX):
            return self.address
        return f"{scheme}://{host_of(self.address)}:{self.port}"

    def leave(self) -> None:
        """Close the socket; the file of a unix socket goes too, unless another server has taken its place."""
        self.listening.close()
        if self.inode:
            path = Path(self.address.removeprefix(UNIX))
            if path.exists() and path.stat().st_ino == self.inode:
                path.unlink()


async def open_place(address: str, port: int, share: bool) -> Place:
    """A place at that address and port, 0 for any free one; with `share` others may listen there too.

    Raises UnavailableError when it is taken or not ours to take, InvalidArgumentError for a bad address.
    """
    if address.startswith(UNIX):
        return _open_unix(address)
    try:
        listening = await bind_tcp(address, port, _OPTION, share)
        _listen(listening)
    except OSError as error:
        raise cannot_listen("HTTP", address, port, error) from error
    return Place(listening, *listening.getsockname()[:2])


def _open_unix(address: str) -> Place:
    """A unix socket at that path. Who may connect follows from the umask, as for any other file."""
    path = unix_path(address, _OPTION)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if is_left_over(path):
            path.unlink()
        listening.bind(str(path))
        _listen(listening)
        return Place(listening, address, inode=path.stat().st_ino)
    except OSError as error:
        listening.close()
        raise cannot_listen("HTTP", address, 0, error) from error


def _listen(bound: socket.socket) -> None:
    """Raises OSError, with the socket closed, where another was faster."""
    try:
        bound.listen()
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)

"""Where to listen: a TCP address, or a unix socket, written `unix:PATH` as gRPC writes it."""

import asyncio
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from naiad.errors import InvalidArgumentError, UnavailableError

UNIX = "unix:"


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
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{scheme}://{host}:{self.port}"

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
        _listen(listening, place)
    except OSError as error:
        listening.close()
        raise UnavailableError(
            f"HTTP cannot listen on {address} port {port}: {error.strerror or error}; choose another port with "
            "--http-port (0 takes any free one) or another address with --http-address"
        ) from error
    return Place(listening, *listening.getsockname()[:2])


def _open_unix(address: str) -> Place:
    """A unix socket at that path. Who may connect follows from the umask, as for any other file."""
    path = Path(address.removeprefix(UNIX))
    if address == UNIX:
        raise InvalidArgumentError("--http-address: 'unix:' names no path; write unix:/run/naiad.sock")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_left_over(path)
        _listen(listening, str(path))
        return Place(listening, address, inode=path.stat().st_ino)
    except OSError as error:
        listening.close()
        raise UnavailableError(
            f"HTTP cannot listen on {address}: {error.strerror or error}; choose another path with --http-address"
        ) from error


def _listen(listening: socket.socket, place: object) -> None:
    listening.bind(place)  # type: ignore[arg-type]
    listening.listen()
    listening.setblocking(False)


def _remove_left_over(path: Path) -> None:
    """Remove the socket of a server that has ended. Raises OSError for what is in use, and for what is no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError("there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise FileExistsError("another server listens there")

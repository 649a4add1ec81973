"""Where to listen: a TCP address or a unix socket that is free, as gRPC wants it written.

gRPC itself says only that it could not bind, and where a unix socket is in use it takes the path from who uses it; so
each place is tried before gRPC gets it.
"""

import asyncio
import socket
import stat
from pathlib import Path

from naiad.errors import InvalidArgumentError, UnavailableError

UNIX = "unix:"


async def find_place(address: str, port: int, share: bool) -> str:
    """The target for gRPC to listen on: `127.0.0.1:8001`, `[::1]:0`, `unix:/run/naiad.sock`.

    Raises UnavailableError when it is taken or not ours to take, InvalidArgumentError for a bad address.
    """
    if address.startswith(UNIX):
        _try_unix(address.removeprefix(UNIX))
        return address
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise InvalidArgumentError(
            f"--grpc-address: '{address}' is no address of this machine: {error.strerror or error}"
        ) from error
    family, _, _, _, place = found[0]
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if share:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            probe.bind(place)
        except OSError as error:
            raise refused(address, port, error.strerror or str(error)) from error
    return f"{host_of(str(place[0]))}:{port}"


def refused(address: str, port: int, reason: str) -> UnavailableError:
    """What is told of a place that cannot be had."""
    if address.startswith(UNIX):
        return UnavailableError(f"gRPC cannot listen on {address}: {reason}; choose another path with --grpc-address")
    return UnavailableError(
        f"gRPC cannot listen on {address} port {port}: {reason}; "
        "choose another port with --grpc-port (0 takes any free one) or another address with --grpc-address"
    )


def host_of(address: str) -> str:
    """The address as it stands before a port."""
    return f"[{address}]" if ":" in address else address


def _try_unix(path: str) -> None:
    """Make sure that nobody listens there, and that a socket can be made there."""
    if not path:
        raise InvalidArgumentError("--grpc-address: 'unix:' names no path; write unix:/run/naiad.sock")
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        _try_folder(place)
        return
    except OSError as error:
        raise refused(UNIX + path, 0, error.strerror or str(error)) from error
    if not stat.S_ISSOCK(mode):
        raise refused(UNIX + path, 0, "there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return  # left behind by a server that has ended; gRPC takes its place
    raise refused(UNIX + path, 0, "another server listens there")


def _try_folder(place: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(str(place))
        except OSError as error:
            raise refused(f"{UNIX}{place}", 0, error.strerror or str(error)) from error
    place.unlink()

"""Listening endpoints: a TCP address, or a unix socket, written `unix:PATH` as in gRPC."""

import asyncio
import os
import socket
import stat
from pathlib import Path

from naiad.errors import UnavailableError, UsageError

UNIX = "unix:"


async def bind_tcp(address: str, port: int, option: str, share: bool = False) -> socket.socket:
    """A TCP socket at that address and port, 0 for any free one; it does not listen yet.

    With `share` others may listen there too. Raises OSError when the address is in use or not permitted, and
    UsageError, which names the `option` that the address comes from, for a bad address.
    """
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(
            without_brackets(address), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise UsageError(
            f"--{option}: '{address}' is not an address of this machine: {error.strerror or error}"
        ) from error
    family, kind, protocol, _, socket_address = resolved[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(socket_address)
    except OSError:
        bound.close()
        raise
    return bound


def unix_path(address: str, option: str) -> Path:
    """The path of a unix socket. Raises UsageError, which names the `option`, where there is none."""
    if address == UNIX:
        raise UsageError(f"--{option}: 'unix:' is without a path; write unix:/run/naiad.sock")
    return Path(address.removeprefix(UNIX))


def is_left_over(path: Path) -> bool:
    """Whether the path is the socket of a server that has ended; False for a path without a file.

    Raises OSError for a socket in use, and for a file that is not a socket.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise FileExistsError("a file that is not a socket is there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return True
    raise FileExistsError("another server listens there")


def cannot_listen(protocol: str, address: str, port: int, error: OSError | str) -> UnavailableError:
    """The error of an address that `protocol` ("HTTP", "gRPC") cannot have, with the options to choose another."""
    reason = error if isinstance(error, str) else error.strerror or error
    option = protocol.lower()
    if address.startswith(UNIX):
        return UnavailableError(
            f"{protocol} cannot listen on {address}: {reason}; choose another path with --{option}-address"
        )
    return UnavailableError(
        f"{protocol} cannot listen on {address} port {port}: {reason}; choose another port with --{option}-port "
        f"(0 takes any free one) or another address with --{option}-address"
    )


def without_brackets(address: str) -> str:
    """The address itself where it is written as before a port: `[::1]`, as gRPC, and so Triton, wants it."""
    return address[1:-1] if address.startswith("[") and address.endswith("]") else address


def host_of(address: str) -> str:
    """The address as it stands before a port."""
    return f"[{address}]" if ":" in address else address

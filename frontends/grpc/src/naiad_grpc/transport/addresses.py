"""Endpoints to listen on: checked, reserved, and written as gRPC targets.

gRPC itself reports only that it could not bind, and takes the path of a unix socket from a server that uses it; so
each endpoint is tried before gRPC gets it. gRPC binds a TCP port with SO_REUSEPORT, several times, and so would a
second server that starts at the same moment: a socket without that flag reserves the port until gRPC listens.
"""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from naiad_kit.frontends.addresses import UNIX, bind_tcp, cannot_listen, host_of, is_left_over, unix_path

_OPTION = "grpc-address"


@asynccontextmanager
async def reserved_target(address: str, port: int, share: bool) -> AsyncIterator[str]:
    """The target for gRPC to listen on: `127.0.0.1:8001`, `[::1]:8001`, `unix:/run/naiad.sock`.

    Port 0 becomes a free one. Within the block, and while gRPC listens on a TCP target, no process without `share`
    can reserve it, nor an address that overlaps with it. Raises UnavailableError if the endpoint is in use or not
    permitted, InvalidArgumentError for an invalid address.
    """
    try:
        if address.startswith(UNIX):
            _try_unix(address)
            reservation = None
        else:
            reservation = await _reserve_tcp(address, port, share)
    except OSError as error:
        raise cannot_listen("gRPC", address, port, error) from error
    if reservation is None:
        yield address
        return
    with reservation:
        host, bound = reservation.getsockname()[:2]
        yield f"{host_of(str(host))}:{bound}"


async def _reserve_tcp(address: str, port: int, share: bool) -> socket.socket:
    """A socket that reserves the port against all but gRPC. Raises OSError."""
    bound = await bind_tcp(address, port, _OPTION, share)
    try:
        if not share:
            bound.listen(1)  # bind(2) with SO_REUSEADDR lets several sockets through, listen(2) only the first
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # from now on gRPC can bind: it sets it first
    except OSError:
        bound.close()
        raise
    return bound


def _try_unix(address: str) -> None:
    """Make sure that a socket can be bound to the path. Raises OSError."""
    path = unix_path(address, _OPTION)
    if is_left_over(path):  # gRPC replaces it
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.bind(str(path))
    path.unlink()

"""Places to listen that are free, as gRPC wants them written.

gRPC itself says only that it could not bind, and where a unix socket is in use it takes the path from who uses it; so
each place is tried before gRPC gets it.
"""

import socket
from pathlib import Path

from naiad.protocol.addresses import UNIX, bind_tcp, cannot_listen, host_of, is_left_over, unix_path

_OPTION = "grpc-address"


async def find_place(address: str, port: int, share: bool) -> str:
    """The target for gRPC to listen on: `127.0.0.1:8001`, `[::1]:0`, `unix:/run/naiad.sock`.

    Raises UnavailableError when it is taken or not ours to take, InvalidArgumentError for a bad address.
    """
    try:
        if address.startswith(UNIX):
            path = unix_path(address, _OPTION)
            if not is_left_over(path):  # what is left over gRPC replaces
                _try_path(path)
            return address
        with await bind_tcp(address, port, _OPTION, share) as probe:
            return f"{host_of(str(probe.getsockname()[0]))}:{port}"
    except OSError as error:
        raise cannot_listen("gRPC", address, port, error) from error


def _try_path(path: Path) -> None:
    """Make sure that a socket can be made there. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.bind(str(path))
    path.unlink()

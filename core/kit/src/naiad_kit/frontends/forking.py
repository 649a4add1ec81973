"""Fork protection: in a forked child, the sockets of the server's endpoints become /dev/null.

A model that forks would otherwise hold every listening socket and every connection open: the ports stay taken after the
server has ended, and clients do not notice.
"""

import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress

Endpoint = int | str
"""A TCP port, or the path of a unix socket."""

_ENDPOINTS: list[Endpoint] = []
_FOLDERS = ("/proc/self/fd", "/dev/fd")


def keep_from_children(endpoint: Endpoint) -> Callable[[], None]:
    """Keep sockets at that local endpoint from forked children from now on, until what this returns is called."""
    _ENDPOINTS.append(endpoint)

    def end() -> None:
        with suppress(ValueError):
            _ENDPOINTS.remove(endpoint)

    return end


def _close_in_child() -> None:
    """The number of a closed file could be taken by another one, which the owner of the number would then close."""
    if not _ENDPOINTS:
        return
    folder = next((each for each in _FOLDERS if os.path.isdir(each)), None)  # noqa: PTH112 - as little as may be
    if folder is None:
        return
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for name in os.listdir(folder):  # noqa: PTH208 - as above
        with suppress(OSError):
            if _endpoint_of(int(name)) in _ENDPOINTS:
                os.dup2(null, int(name), inheritable=False)
    os.close(null)


def _endpoint_of(descriptor: int) -> Endpoint | None:
    """The local end of a stream socket; None for any other file. Raises OSError for one that is not open."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return None
    borrowed = socket.socket(fileno=descriptor)
    try:
        if borrowed.type != socket.SOCK_STREAM:
            return None
        name = borrowed.getsockname()
        if borrowed.family in (socket.AF_INET, socket.AF_INET6):
            return int(name[1])
        return name if isinstance(name, str) and name else None
    finally:
        borrowed.detach()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)

"""A pair of connections in one process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from naiad_process_workers.connection import Connection, Memory


@contextmanager
def connected(writable: bool = False) -> Iterator[tuple[Connection, Connection]]:
    """Two connections over one socket pair; the second one may write to what it reads if `writable`."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for each in (here, there):
        each.settimeout(10)
    pair = Connection(here, Memory()), Connection(there, Memory(writable))
    try:
        yield pair
    finally:
        for connection in pair:
            connection.close()
            connection.memory.close()

"""A pair of connections in one process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from naiad_process_workers.connection import Connection, Memory


@contextmanager
def connected() -> Iterator[tuple[Connection, Connection]]:
    """Two connections over one socket pair."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for each in (here, there):
        each.settimeout(10)
    pair = Connection(here, Memory()), Connection(there, Memory())
    try:
        yield pair
    finally:
        for connection in pair:
            connection.close()
            connection.memory.close()

"""A pair of connections in one process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from naiad_process_workers.arenas import SMALLEST_ARENA, OwnArenas
from naiad_process_workers.connection import Connection, Memory


def is_free(arenas: OwnArenas, channel: object) -> bool:
    """Whether the reader has no block of the first arena of that channel: all of it can be taken, and is given back."""
    arena, offset = arenas.allocate(SMALLEST_ARENA, channel, lambda new: None)
    arenas.free([(arena.number, offset)])
    return arena.number == 1


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

"""Wake-up of the event loop by grpcio's event thread, through a pipe that is emptied in one read.

grpcio writes a byte for each event into a socket pair and reads one byte for each wake-up, although a wake-up handles
all pending events: the remaining bytes wake the loop again for nothing. A pipe is cheaper to write to, and reading it
empty merges several turns of the loop. At 16 concurrent requests that gave 7 % more throughput.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from naiad_grpc.transport.experiments import is_tested

_ALL = 4096
"""Bytes of one read; each is an event that the same wake-up handles."""


class PipeEnd:
    """One end of a pipe, with the methods of a socket that grpcio uses."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """The file descriptor."""
        return self._descriptor

    def setblocking(self, flag: bool) -> None:
        """As `socket.setblocking`."""
        os.set_blocking(self._descriptor, flag)

    def recv(self, _size: int) -> bytes:
        """All available bytes, regardless of the requested size. Raises BlockingIOError if there are none."""
        return os.read(self._descriptor, _ALL)

    def close(self) -> None:
        """Close the file descriptor."""
        os.close(self._descriptor)


@contextmanager
def pipe_wakeups() -> Iterator[None]:
    """Make grpcio create a pipe instead of a socket pair, if it first creates it within this context on this thread.

    No effect with a grpcio that is not tested.
    """
    if not is_tested():
        yield
        return
    make_pair, home = socket.socketpair, threading.get_ident()

    def make(*arguments: Any, **options: Any) -> Any:
        if threading.get_ident() != home:
            return make_pair(*arguments, **options)
        return tuple(map(PipeEnd, os.pipe()))

    socket.socketpair = make
    try:
        yield
    finally:
        socket.socketpair = make_pair

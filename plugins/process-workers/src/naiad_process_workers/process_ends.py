"""Waits for the ends of processes, on one thread for all of them, and shuts down their links.

A link stays open after its process where that has forked in C, as some libraries do: the child has its descriptors.
"""

import os
import select
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress


class ProcessEnds:
    """The thread, which starts with the first process and sleeps until one ends. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._poll: select.epoll | None = None
        self._links: dict[int, Sequence[socket.socket]] = {}

    def watch(self, pid: int, links: Sequence[socket.socket]) -> None:
        """Shut down these links when that child of this process has ended; what it has sent can still be read.

        The sequence is read then, so links may be added to it. Raises OSError, and RuntimeError where no thread starts.
        """
        with self._lock:
            if self._poll is None:
                poll = select.epoll()
                threading.Thread(target=self._run, args=(poll,), name="naiad-process-ends", daemon=True).start()
                self._poll = poll
            descriptor = os.pidfd_open(pid)
            self._links[descriptor] = links
            self._poll.register(descriptor, select.EPOLLIN)

    def _run(self, poll: select.epoll) -> None:
        while True:
            for descriptor, _ in poll.poll():
                with self._lock:
                    links = self._links.pop(descriptor)
                    poll.unregister(descriptor)  # closing is not enough: a fork of the server may have it open, too
                    os.close(descriptor)
                for link in links:
                    with suppress(OSError):  # it is closed
                        link.shutdown(socket.SHUT_RDWR)

"""The end of a model's process: a watcher, which then shuts down its links and ends its children, and a description.

A library of a model may fork in C. The child inherits the links, which then stay open after the process has ended.
"""

import errno
import logging
import os
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from naiad_config.errors import MORE_PROCESSES
from naiad_process_workers.messages import LINK_LOST

_logger = logging.getLogger("naiad.model")

SECONDS_TO_LEAVE = 1.0
"""The children of a process that has ended get SIGTERM, and after so long SIGKILL."""

_NO_PIDFD = (errno.ENOSYS, errno.EPERM)
"""Linux before 5.3 has no pidfd, and filters of system calls in containers may refuse one."""

_CAUSES_OF_SIGNALS: dict[int, str] = {
    signal.SIGKILL: ", as the system does when memory runs out",
    signal.SIGINT: f", which OpenBLAS raises when it cannot start its threads; if the log says so, {MORE_PROCESSES}",
}
_SIGNALS_OF_MEMORY = (signal.SIGABRT, signal.SIGBUS, signal.SIGKILL, signal.SIGSEGV)


class ProcessEnds:
    """One thread for all processes. It starts with the first, and sleeps until one ends. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._poll: select.epoll | None = None
        self._watched: dict[int, tuple[int, Sequence[socket.socket]]] = {}
        self._leaving: deque[tuple[float, int]] = deque()  # when to kill which group

    def watch(self, pid: int, links: Sequence[socket.socket]) -> None:
        """Once the process `pid` has ended, shut down `links` and end its children: those in the group that it led.

        What it has sent can still be read from a link. Links may be added to the sequence until its end. Does
        nothing where the system has no pidfd. Raises OSError for want of descriptors, and RuntimeError for want of a
        thread.
        """
        with self._lock:
            if self._poll is None:
                poll = select.epoll()
                threading.Thread(target=self._run, args=(poll,), name="naiad-process-ends", daemon=True).start()
                self._poll = poll
            try:
                descriptor = os.pidfd_open(pid)
            except OSError as error:
                if error.errno not in _NO_PIDFD:
                    raise
                _logger.debug("process %d ends unnoticed where a child has its links: %s", pid, error)
                return
            self._watched[descriptor] = pid, links
            self._poll.register(descriptor, select.EPOLLIN)

    def _run(self, poll: select.epoll) -> None:
        while True:
            for descriptor, _ in poll.poll(self._seconds_to_kill()):
                with self._lock:
                    pid, links = self._watched.pop(descriptor)
                    poll.unregister(descriptor)  # closing is not enough: a fork of the server may have it open, too
                    os.close(descriptor)
                for link in list(links):  # an instance may be closed meanwhile
                    with suppress(OSError):  # it is closed
                        link.shutdown(socket.SHUT_RDWR)
                if _signal_group(pid, signal.SIGTERM):
                    self._leaving.append((time.monotonic() + SECONDS_TO_LEAVE, pid))
            while self._seconds_to_kill() == 0.0:
                _signal_group(self._leaving.popleft()[1], signal.SIGKILL)

    def _seconds_to_kill(self) -> float | None:
        """The time until the next group is to be killed, None without one."""
        return max(0.0, self._leaving[0][0] - time.monotonic()) if self._leaving else None


def _signal_group(leader: int, number: int) -> bool:
    """Signal the group of this leader.

    Returns False if the group has no members; its number may then belong to another group.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
        return True
    return False


def describe_exit(code: int, memory: int) -> str:
    """How a process ended; `memory` is the limit of its address space, which may be why, 0 without any."""
    if code == LINK_LOST:
        return "it closed its link to the server"
    limited = f"; its memory_limit is {memory} bytes" if memory else ""
    if code >= 0:
        return f"exit code {code}{limited}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    hint = _CAUSES_OF_SIGNALS.get(-code, "")
    return f"signal {-code} ({name}){hint}{limited if -code in _SIGNALS_OF_MEMORY else ''}"

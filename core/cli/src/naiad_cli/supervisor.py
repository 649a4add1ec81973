"""Supervisor of `naiad serve --restart`: a parent process that starts the server again when it crashed."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic

from naiad_cli.stop_signals import stop_signals
from naiad_config.errors import describe_error

_logger = logging.getLogger("naiad")

_VARIABLE = "NAIAD_SUPERVISOR"
"""Names the supervisor's process and the pipe over which the server reports that it serves."""

_LONGEST_DELAY = 30.0
_STABLE_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1


@dataclass
class RestartPolicy:
    """Decides whether a server that ended is started again, and how long to wait before."""

    delay: float = 1.0
    has_served: bool = False

    def next_delay(self, status: int, served: bool, lifetime: float) -> float | None:
        """Seconds to wait, None when it is not started again: it stopped in order, or none of them could start.

        `status` is negative after a signal. A restart that fails after a server has served is tried again: the store
        may be away for a moment, or the port not free yet. The delay doubles up to 30 s, and is 1 s again after a
        minute of life.
        """
        self.has_served |= served
        if status == 0 or (status > 0 and not self.has_served):
            return None
        if lifetime >= _STABLE_SECONDS:
            self.delay = 1.0
        delay, self.delay = self.delay, min(_LONGEST_DELAY, 2 * self.delay)
        return delay


class Supervisor:
    """Runs a server in a child process, in a process group of its own: a Ctrl-C of the terminal reaches it once."""

    def __init__(self, words: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", "naiad_cli.main", *words]
        self._policy = RestartPolicy()
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Start the server until it ends in order; its exit status, or 128 and the number of its signal."""
        for number in stop_signals():
            signal.signal(number, self._forward)
        while True:
            started = monotonic()
            status, served = self._serve()
            delay = self._policy.next_delay(status, served, monotonic() - started)
            if delay is None or not self._signals.empty():
                return status if status >= 0 else 128 - status
            how = f"exit status {status}" if status >= 0 else f"signal {-status} ({signal.strsignal(-status)})"
            _logger.error("the server ended with %s; it is started again in %g s", how, delay)
            with suppress(Empty):
                self._signals.get(timeout=delay)
                return 0

    def _serve(self) -> tuple[int, bool]:
        """The exit status of one server process, and whether it came to serve."""
        reading, writing = os.pipe()
        environment = os.environ | {_VARIABLE: f"{os.getpid()}:{writing}"}
        try:
            self._child = subprocess.Popen(  # noqa: S603 - our own command line once more
                self._command, env=environment, pass_fds=(writing,), process_group=0
            )
        except OSError as error:  # such as no memory for a process, soon after the server used all of it
            _logger.error("the server's process cannot be started: %s", describe_error(error))
            os.close(reading)
            return 1, False
        finally:
            os.close(writing)
        if not self._signals.empty():  # it came before there was a child to pass it on to
            self._child.send_signal(signal.SIGTERM)
        status = self._child.wait()
        self._child = None
        os.set_blocking(reading, False)  # a process that a model started may hold the other end
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            return status, bool(pipe.read(1))

    def _forward(self, number: int, _frame: object) -> None:
        self._signals.put(number)
        if self._child is not None:
            self._child.send_signal(number)


def is_supervised() -> bool:
    """Whether the parent of this process is a supervisor."""
    return os.environ.get(_VARIABLE, "").startswith(f"{os.getppid()}:")


def follow_supervisor() -> None:
    """Have this process stop, as by SIGTERM, when its supervisor ends (Linux)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if not is_supervised():  # it has ended meanwhile
            os.kill(os.getpid(), signal.SIGTERM)


def report_serving() -> None:
    """Notify the supervisor, if there is one, that the server is ready."""
    if not is_supervised():
        return
    descriptor = int(os.environ.pop(_VARIABLE).partition(":")[2])
    with suppress(OSError), os.fdopen(descriptor, "wb", buffering=0) as pipe:
        pipe.write(b"1")

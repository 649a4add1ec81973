"""Stop signals: SIGINT, SIGTERM and SIGHUP stop the server, and end the process when the stop stands still.

Nothing here needs the event loop to run, the log to be written or a thread to be started after the signal.
"""

import faulthandler
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from time import monotonic, sleep

_logger = logging.getLogger("naiad")

SPARE_SECONDS = 5.0
"""The process ends this long after `exit-timeout-secs`, whatever stands still."""

_SAME_KEY_SECONDS = 0.5
"""A second SIGINT within this time is the same Ctrl-C, passed on by a program that we run under."""

_LAST_RESORT_SECONDS = 2.0
"""Seconds after which a thread of C ends the process, without the interpreter's lock: C code may never release that."""

_SECONDS_TO_SPEAK = 1.0


class Action(Enum):
    """What a signal asks for."""

    STOP = auto()
    GO_ON = auto()
    END_NOW = auto()


def stop_signals() -> list[signal.Signals]:
    """The signals that stop this process. A SIGHUP that is ignored (`nohup`) stays ignored."""
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    is_ignored = hangup is None or signal.getsignal(hangup) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *(() if is_ignored else (hangup,))]


@dataclass
class StopPolicy:
    """Decides what a signal does. Times are those of `time.monotonic()`."""

    first_at: float | None = None
    interrupted_at: float | None = None

    def received(self, number: int, now: float) -> Action:
        """The first signal stops the server, a second Ctrl-C ends the process, all others change nothing."""
        interrupted_at = self.interrupted_at
        if number == signal.SIGINT and interrupted_at is None:
            self.interrupted_at = now
        if self.first_at is None:
            self.first_at = now
            return Action.STOP
        if number == signal.SIGINT and interrupted_at is not None and now - interrupted_at >= _SAME_KEY_SECONDS:
            return Action.END_NOW
        return Action.GO_ON


class StopSignals:
    """Receives the stop signals of a process and acts on them on threads of its own.

    `stop` is called for the first signal, on another thread. `describe_step` says what the stop is busy with. `end`
    ends the process with a status, `end_in` ends it after some seconds without the interpreter's lock, `grace` is
    `exit-timeout-secs`.
    """

    def __init__(
        self,
        stop: Callable[[], object],
        describe_step: Callable[[], str],
        grace: float,
        end: Callable[[int], object],
        end_in: Callable[[float], object],
    ) -> None:
        self._stop = stop
        self._describe_step = describe_step
        self._grace = grace
        self._end = end
        self._end_in = end_in
        self._policy = StopPolicy()
        self._numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._first: queue.SimpleQueue[None] = queue.SimpleQueue()

    def install(self) -> None:
        """Receive the signals from now on; for the main thread."""
        for target in (self._act, self._watch):
            threading.Thread(target=target, name="naiad-stop", daemon=True).start()
        numbers = stop_signals()
        for number in numbers:
            signal.signal(number, self.receive)
        if hasattr(os, "register_at_fork"):
            _keep_from_children(numbers, self.receive)

    def receive(self, number: int, _frame: object = None) -> None:
        """The signal handler. It may interrupt itself and anything else, so it takes no lock: `put` is re-entrant."""
        self._numbers.put(number)

    def act(self, number: int, now: float) -> None:
        """Do what a signal asks for. The stop comes before the log line, and does not depend on it."""
        action = self._policy.received(number, now)
        if action is Action.STOP:
            self._first.put(None)
            with suppress(RuntimeError):  # the event loop is closed: the process is about to end anyway
                self._stop()
            again = "; Ctrl-C again ends the process at once" if number == signal.SIGINT else ""
            _logger.info("Signal (%d) received. Requests in flight have %g s to end%s", number, self._grace, again)
        elif action is Action.GO_ON:
            text = (
                "Signal (%d) received again; still stopping (%s), give it up to %g s; a second Ctrl-C ends it at once"
            )
            _logger.warning(text, number, self._describe_step(), self._grace)
        else:
            self._end_with("Signal (%d) received again; the process ends at once", number)

    def _act(self) -> None:
        while True:
            number = self._numbers.get()
            with suppress(BaseException):  # the next signal must still find this thread
                self.act(number, monotonic())

    def _watch(self) -> None:
        self._first.get()
        with suppress(Exception):
            self._end_in(self._grace + SPARE_SECONDS + _LAST_RESORT_SECONDS)
        sleep(self._grace + SPARE_SECONDS)
        self._end_with(
            "the stop took %g s and stands still: %s; the process ends; %s",
            self._grace + SPARE_SECONDS,
            self._describe_step(),
            _main_frame(),
        )

    def _end_with(self, message: str, *values: object) -> None:
        """End the process with these last words; they get a second, since the handler of another library may block."""
        try:
            speaking = threading.Thread(target=lambda: _logger.error(message, *values), daemon=True)
            speaking.start()
            speaking.join(_SECONDS_TO_SPEAK)
        finally:
            self._end(1)


def _keep_from_children(numbers: Sequence[int], handler: Callable[..., None]) -> None:
    """In the child of a fork, leave signals with that handler to the system: no thread acts on them there.

    A `multiprocessing.Pool` ends its processes by SIGTERM, at times as soon as they are there: a signal that comes
    before the child has the default again would be lost, so it waits until then.
    """
    earlier = threading.local()

    def block() -> None:
        earlier.mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier.mask)

    def restore() -> None:
        signal.set_wakeup_fd(-1)  # the server's event loop reads the other end
        for number in numbers:
            if signal.getsignal(number) == handler:
                signal.signal(number, signal.SIG_DFL)
        unblock()

    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=restore)


def ignore_termination() -> None:
    """Ignore SIGTERM and SIGHUP from now on: at its end the interpreter would have the system kill the process.

    A supervisor that sends SIGTERM once more would see that status in place of the server's.
    """
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def end_without_the_interpreter(seconds: float) -> None:
    """Have a thread of C end the process (status 1) after so many seconds.

    It would write stacks first, and a pipe that is not read would hold it up: they go to /dev/null.
    """
    silent = os.open(os.devnull, os.O_WRONLY)
    faulthandler.dump_traceback_later(seconds, exit=True, file=silent)


def _main_frame() -> str:
    """The code that the main thread executes."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    if frame is None:
        return "the main thread has ended"
    code = frame.f_code
    return f"the main thread is in {code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})"

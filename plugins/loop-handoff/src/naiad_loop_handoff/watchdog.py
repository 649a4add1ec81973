"""Watchdog: reports executions that run longer than a limit. Uses no CPU while there are none.

A thread that waits for the interpreter's lock is woken each time it is released, mostly without getting it. So the
watchdog does not check every few milliseconds, but sleeps on a timer of Linux, which executions postpone.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Protocol

LONG = 0.005
"""Seconds after which an execution is long."""

_SPARE = LONG / 2
"""The timer is put off no more often than this passes, so that an execution is noticed within `LONG + _SPARE`."""

_MONOTONIC = 1
_CLOSE_ON_EXEC = 0o2000000


class Timer(Protocol):
    """Ends a wait some time after it was set last."""

    def set(self, seconds: float) -> None:
        """Let the wait end in so many seconds, and not before. For any thread."""
        ...

    def wait(self) -> None:
        """Block until the time that was set last; for ever if `set` was not called since the last return."""
        ...


class _Times(ctypes.Structure):
    """`struct itimerspec`: the interval, then the time to go, each in seconds and nanoseconds."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every", "every_ns", "left", "left_ns"))


class KernelTimer:
    """A timer file descriptor (timerfd_create(2)), which costs only Linux anything while it is put off."""

    def __init__(self) -> None:
        # with the interpreter's lock held: setting it never waits, and the lock may be long in coming back
        library = ctypes.PyDLL(None)
        self._settime = library.timerfd_settime
        self._descriptor: int = library.timerfd_create(_MONOTONIC, _CLOSE_ON_EXEC)
        if self._descriptor < 0:
            raise OSError("no timer could be made")

    def set(self, seconds: float) -> None:
        """See `Timer`."""
        remaining, remaining_ns = divmod(int(seconds * 1e9), 1_000_000_000)
        self._settime(self._descriptor, 0, ctypes.byref(_Times(0, 0, remaining, max(1, remaining_ns))), None)

    def wait(self) -> None:
        """See `Timer`."""
        os.read(self._descriptor, 8)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)


class PlainTimer:
    """The same anywhere, for a thread that wakes to see that it is not time yet."""

    def __init__(self) -> None:
        self._due = 0.0
        self._is_set = threading.Event()

    def set(self, seconds: float) -> None:
        """See `Timer`."""
        self._due = monotonic() + seconds
        self._is_set.set()

    def wait(self) -> None:
        """See `Timer`."""
        self._is_set.wait()
        while (remaining := self._due - monotonic()) > 0:
            sleep(remaining)
        self._is_set.clear()


def timer() -> Timer:
    """The best one of this machine."""
    if sys.platform == "linux":
        try:
            return KernelTimer()
        except (OSError, AttributeError):
            pass
    return PlainTimer()


class Watchdog:
    """Calls `notice` from a thread of its own when an execution that has begun takes long.

    The end of an execution is not reported: `notice` checks whether it has ended.
    """

    def __init__(self, notice: Callable[[], object], timer: Timer) -> None:
        self._notice = notice
        self._timer = timer
        self._began = 0.0
        self._put_off = 0.0
        self._over = False

    def start(self) -> None:
        """Have a thread from now on."""
        threading.Thread(target=self._run, name="naiad-loop-watchdog", daemon=True).start()

    def begin(self) -> None:
        """An execution begins, and the one before has ended."""
        now = self._began = monotonic()
        if now >= self._put_off:
            self._put_off = now + _SPARE
            self._timer.set(LONG + _SPARE)

    def end(self) -> None:
        """Let the thread end."""
        self._over = True
        self._timer.set(0)

    def _run(self) -> None:
        while True:
            self._timer.wait()
            if self._over:
                return
            remaining = self._began + LONG - monotonic()
            if remaining > 0:
                self._timer.set(remaining)
            else:
                self._notice()

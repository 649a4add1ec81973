"""Scheduling priority of a model's process: low while a large model loads and while it closes.

The load of large files keeps each processor busy that it gets, for seconds; the server, which wakes for each request,
would wait for its time slices. A process may always lower its priority, but take it back only with permission: without
it, a load has the usual one. The process has a session of its own, for which Linux may have a scheduling group with a
priority of its own (sched_autogroup); then that one counts, and needs no permission.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

LARGE_BYTES = 128 << 20
"""A folder with so many bytes of files is large: on a busy machine a low priority makes a load several times longer."""

_LOWER = 10
"""Added to the nice value: a tenth of the share of the others, so that a load on a busy machine ends, too.

A thread that woke each millisecond beside two busy processes waited 746 ms for them in 9 s; 89 with this one, 412 with
5, 36 with 19, the lowest.
"""
_AUTOGROUP = Path("/proc/self/autogroup")
_RETRY_SECONDS = 0.02
"""Linux refuses (EAGAIN) to change the priority of a group within 0.1 s of another change on the machine."""


class LoadPriority:
    """A low priority from its construction to `end`, for all threads of this process."""

    def __init__(self) -> None:
        self._before = os.getpriority(os.PRIO_PROCESS, 0)
        self._low = min(self._before + _LOWER, 19)
        self._is_nice = _may_take_back(self._before)
        if self._is_nice:
            _change_threads(self._before, self._low)
        self._has_group = _set_group(_LOWER)

    def end(self) -> None:
        """Give the threads of this process the priority that the first one had. Harmless when repeated."""
        if self._is_nice:
            self._is_nice = False
            _change_threads(self._low, self._before)
        if self._has_group:
            self._has_group = False
            if not _set_group(0):
                threading.Thread(target=_restore_group, name="naiad-priority", daemon=True).start()


def is_large(folder: Path) -> bool:
    """Whether the files of a folder are large."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # a broken link
                size += Path(parent, name).stat().st_size
            if size >= LARGE_BYTES:
                return True
    return False


def lower_for_good() -> None:
    """A low priority for all threads that have the usual one of this, until the process ends."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    _change_threads(usual, min(usual + _LOWER, 19))
    _set_group(_LOWER)


def _may_take_back(before: int) -> bool:
    """Whether a thread that has lowered its priority may take back that one. Tries it on a thread that ends."""
    allowed = []

    def attempt() -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before + 1)  # and no lower: a busy machine lets it wait
            os.setpriority(os.PRIO_PROCESS, 0, before)
            allowed.append(True)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join()
    return bool(allowed)


def _change_threads(before: int, after: int) -> None:
    """Change the priority of the threads that have that one; a model may have given others to threads of its own."""
    for task in Path("/proc/self/task").iterdir():
        thread = int(task.name)
        with suppress(OSError):  # it has ended
            if os.getpriority(os.PRIO_PROCESS, thread) == before:
                os.setpriority(os.PRIO_PROCESS, thread, after)


def _set_group(priority: int) -> bool:
    """Set the priority of the session's group; whether that was possible."""
    try:
        _AUTOGROUP.write_text(str(priority), encoding="ascii")
    except OSError:  # no such groups, or too soon after another change
        return False
    return True


def _restore_group() -> None:
    while not _set_group(0):
        time.sleep(_RETRY_SECONDS)

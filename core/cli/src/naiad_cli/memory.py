"""Memory trimming: garbage collections and `malloc_trim` when the process has grown.

Requests are freed by reference counts. Collections are the safety net for cycles in the code of models and libraries,
since `naiad serve` lets the collector run seldom. What large messages took would stay with glibc, in the arenas of many
threads: see `bound_allocator`.
"""

import ctypes
import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

SECONDS_BETWEEN = 1.0
_FIRST_RETRY, _LAST_RETRY = 8, 512
_MIB = 2**20

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MMAP_BYTES = 8 * _MIB
_TRIM_BYTES = 16 * _MIB
"""So much may be free at the end of an arena before it is returned."""

_SET_BY_USERS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


@dataclass
class MemoryPolicy:
    """Decides whether to collect, from the memory that is resident and what was resident after the last collection."""

    idle_mark: int
    """Bytes after the last collection by an idle server."""

    mark: int
    """Bytes after the last collection of any kind."""

    trim_mark: int
    """Bytes after free pages were last given back."""

    start: int
    """Bytes when the server had started, or fewer since."""

    def observe(self, resident: int) -> None:
        """Growth counts from the lowest mark since the last time."""
        self.idle_mark = min(self.idle_mark, resident)
        self.mark = min(self.mark, resident)
        self.trim_mark = min(self.trim_mark, resident)
        self.start = min(self.start, resident)

    def must_trim(self, resident: int) -> bool:
        """Whether an idle server should give free pages back: a tenth and 16 MiB more than after the last time."""
        return resident > self.trim_mark * 1.1 + 16 * _MIB

    def must_collect_idle(self, resident: int) -> bool:
        """Whether an idle server should collect: a quarter and 64 MiB more than after its last collection."""
        return resident > self.idle_mark * 1.25 + 64 * _MIB

    def is_large(self, resident: int) -> bool:
        """Whether the process is a quarter and 64 MiB larger than at its smallest."""
        return resident > self.start * 1.25 + 64 * _MIB

    def must_collect_busy(self, resident: int) -> bool:
        """Whether even a busy server should collect: half and 512 MiB more than after the last collection."""
        return resident > self.mark * 1.5 + 512 * _MIB


class Retries:
    """When to try again although nothing has changed: after 8 checks, then 16, 32 … 512, while the process stays large.

    What was in use at the last collection, such as calls that a client had reset, may be garbage by now.
    """

    def __init__(self) -> None:
        self._wait = self._checks_left = _FIRST_RETRY

    def is_due(self, is_large: bool) -> bool:
        """Count a check of an idle server; whether to try again now."""
        if not is_large:
            self._wait = self._checks_left = _FIRST_RETRY
            return False
        self._checks_left -= 1
        if self._checks_left:
            return False
        self._wait = self._checks_left = min(2 * self._wait, _LAST_RETRY)
        return True


class MemoryTrimmer:
    """Collects and trims when that is due. A server is idle when `has_work` is false now and was at the last check.

    Each time it becomes idle, growth for `trim` counts from the start anew: what was in use at an earlier trim may be
    free by now.
    """

    def __init__(
        self,
        read_resident: Callable[[], int],
        has_work: Callable[[], bool],
        collect: Callable[[], object],
        trim: Callable[[], object],
    ) -> None:
        self._read_resident = read_resident
        self._has_work = has_work
        self._collect = collect
        self._trim = trim
        self._has_trimmed = False
        self._was_idle = False
        self._retries = Retries()
        resident = read_resident()
        self._policy = MemoryPolicy(idle_mark=resident, mark=resident, trim_mark=resident, start=resident)

    def check(self) -> None:
        """Collect and trim if that is due. For the event loop's thread, once a second."""
        resident, is_idle = self._read_resident(), not self._has_work()
        policy, stays_idle = self._policy, is_idle and self._was_idle
        self._was_idle = is_idle
        if not is_idle:
            policy.trim_mark = policy.start
        elif self._has_trimmed:
            policy.trim_mark = resident
        self._has_trimmed = False
        policy.observe(resident)
        tries_again = stays_idle and self._retries.is_due(policy.is_large(resident))
        if tries_again or (stays_idle and policy.must_collect_idle(resident)):
            self._collect()
            policy.idle_mark = policy.mark = resident = self._read_resident()
        elif policy.must_collect_busy(resident):
            self._collect()
            policy.mark = self._read_resident()
        if tries_again or (stays_idle and policy.must_trim(resident)):
            self._trim()  # on a thread: the mark follows with the next check
            self._has_trimmed = True


class Timers(Protocol):
    """What is needed of an event loop."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> "Cancellable":
        """As `asyncio.AbstractEventLoop.call_later`."""
        ...


class Cancellable(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None:
        """Never fire."""
        ...


@contextmanager
def trimming_memory(loop: Timers, has_work: Callable[[], bool]) -> Iterator[None]:
    """Check once a second while the block runs, where the system says how much memory is resident (Linux)."""
    try:
        resident_bytes()
    except OSError:
        yield
        return
    trimmer = MemoryTrimmer(resident_bytes, has_work, gc.collect, glibc_trim())
    timer: Cancellable | None = None

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(SECONDS_BETWEEN, tick)
        trimmer.check()

    tick()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def resident_bytes() -> int:
    """The resident set size of this process. Raises OSError where the system does not say (proc(5), `statm`)."""
    pages = Path("/proc/self/statm").read_bytes().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def glibc_trim() -> Callable[[], object]:
    """Has glibc give its free pages back (`malloc_trim(3)`), on a thread: it takes 0.1 s and more for a gigabyte.

    After 40 clients that left within 30 MB the process stayed at 118 MB, and is back at the 58 MB of its start. Other
    allocators have no such function; then nothing is done.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return lambda: None

    def give_back() -> None:
        threading.Thread(target=trim, args=(0,), name="naiad-trim", daemon=True).start()

    return give_back


def bound_allocator() -> None:
    """Have glibc return large blocks to the system when they are freed, unless the environment sets it up (mallopt(3)).

    By default the first freed block of 32 MB makes later ones come from arenas, one for each thread, which fragment:
    four clients that sent 1 to 30 MB over HTTP and gRPC left 211 MB instead of 128. A message of 20 MB costs 40 to 50 %
    more processor time that way, for its new pages; those below 8 MiB, which still come from the arenas, cost the same.
    """
    if any(name in os.environ for name in _SET_BY_USERS):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        set_option(_M_TRIM_THRESHOLD, _TRIM_BYTES)

"""Memory trimming: garbage collections and `malloc_trim` when the process has grown.

Requests are freed by reference counts. Collections are the safety net for cycles in the code of models and libraries,
since `naiad serve` lets the collector run seldom. What large messages took would stay with glibc, in the arenas of many
threads: see `naiad_cli.allocator`.
"""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from naiad_cli.allocator import FreePages
from naiad_cli.timers import Timers, repeating

SECONDS_BETWEEN = 1.0
_FIRST_RETRY, _LAST_RETRY = 8, 512
_MIB = 2**20

_YOUNG, _OLD = 1, 2
"""Generations of the garbage collector: with those that survived one collection, and all."""

_MANY_YOUNG = 5_000
_YOUNG_BEFORE_OLD = 20

_BETWEEN_BUSY_TRIMS = 60
_SHARE_OF_BUSY_TRIMS = 2000


@dataclass
class MemoryPolicy:
    """Decides whether to collect, from the memory that is resident and what was resident after the last collection."""

    idle_mark: int
    """Bytes after the last collection by an idle server."""

    mark: int
    """Bytes after the last collection of any kind."""

    trim_mark: int
    """Bytes after free pages were last given back."""

    busy_trim_mark: int
    """Bytes after a busy server last gave free pages back, or fewer since."""

    start: int
    """Bytes when the server had started, or fewer since."""

    def observe(self, resident: int) -> None:
        """Growth counts from the lowest mark since the last time."""
        self.idle_mark = min(self.idle_mark, resident)
        self.mark = min(self.mark, resident)
        self.trim_mark = min(self.trim_mark, resident)
        self.busy_trim_mark = min(self.busy_trim_mark, resident)
        self.start = min(self.start, resident)

    def must_trim(self, resident: int) -> bool:
        """Whether an idle server should give free pages back: a tenth and 16 MiB more than after the last time."""
        return resident > self.trim_mark * 1.1 + 16 * _MIB

    def may_trim_busy(self, resident: int) -> bool:
        """Whether a busy server should give free pages back: a quarter and 64 MiB more than after it last did."""
        return resident > self.busy_trim_mark * 1.25 + 64 * _MIB

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


class BusyTrims:
    """When a busy server that has grown gives free pages back: once a minute at most, and for a 2000th of the time.

    Requests wait meanwhile: 100 MB that were free in pieces of 1 MB took 19 ms, and 1 GB took 112 ms.
    """

    def __init__(self) -> None:
        self._checks = 0

    def is_due(self, has_grown: bool, seconds: float) -> bool:
        """Count a check, one second after the last; whether to trim now, if that took so many seconds the last time."""
        self._checks += 1
        if not has_grown or self._checks < max(_BETWEEN_BUSY_TRIMS, _SHARE_OF_BUSY_TRIMS * seconds):
            return False
        self._checks = 0
        return True


class Pages(Protocol):
    """The free pages of the allocator; see `naiad_cli.allocator.FreePages`."""

    seconds: float
    """Processor time that giving them back took the last time."""

    def give_back(self) -> object:
        """Start to give them back to the system."""
        ...


class MemoryTrimmer:
    """Collects and trims when that is due. A server is idle when `has_work` is false now and was at the last check.

    `collect` collects a generation and the younger ones, as `gc.collect`; `count_young` counts the objects since the
    last collection.

    Each time it becomes idle, growth for `trim` counts from the start anew: what was in use at an earlier trim may be
    free by now.
    """

    def __init__(
        self,
        read_resident: Callable[[], int],
        has_work: Callable[[], bool],
        collect: Callable[[int], object],
        count_young: Callable[[], int],
        pages: Pages,
    ) -> None:
        self._read_resident = read_resident
        self._has_work = has_work
        self._collect = collect
        self._count_young = count_young
        self._young_collections = 0
        self._pages = pages
        self._has_trimmed = False
        self._was_idle = False
        self._retries = Retries()
        self._busy_trims = BusyTrims()
        resident = read_resident()
        self._policy = MemoryPolicy(resident, resident, resident, resident, resident)

    def check(self) -> None:
        """Collect and trim if that is due. For the event loop's thread, once a second."""
        resident, is_idle = self._read_resident(), not self._has_work()
        policy, stays_idle = self._policy, is_idle and self._was_idle
        self._was_idle = is_idle
        if self._has_trimmed:
            policy.trim_mark = policy.busy_trim_mark = resident
        if not is_idle:
            policy.trim_mark = policy.start
        self._has_trimmed = False
        policy.observe(resident)
        tries_again = stays_idle and self._retries.is_due(policy.is_large(resident))
        if tries_again or (stays_idle and policy.must_collect_idle(resident)):
            self._collect(_OLD)
            policy.idle_mark = policy.mark = resident = self._read_resident()
        elif policy.must_collect_busy(resident):
            self._collect(_OLD)
            policy.mark = self._read_resident()
        elif stays_idle and self._count_young() >= _MANY_YOUNG:
            self._collect_young()
        must_trim = policy.must_trim(resident) if stays_idle else self._must_trim_busy(resident)
        if tries_again or must_trim:
            self._pages.give_back()  # on a thread: the marks follow with the next check
            self._has_trimmed = True

    def _collect_young(self) -> None:
        """Free what models that were replaced leave in cycles, some 400 objects each: 8 MB after 100 loads."""
        self._young_collections += 1
        self._collect(_OLD if self._young_collections % _YOUNG_BEFORE_OLD == 0 else _YOUNG)

    def _must_trim_busy(self, resident: int) -> bool:
        return self._busy_trims.is_due(self._policy.may_trim_busy(resident), self._pages.seconds)


@contextmanager
def trimming_memory(loop: Timers, has_work: Callable[[], bool]) -> Iterator[None]:
    """Check once a second while the block runs, where the system says how much memory is resident (Linux)."""
    try:
        resident_bytes()
    except OSError:
        yield
        return
    trimmer = MemoryTrimmer(resident_bytes, has_work, gc.collect, lambda: gc.get_count()[0], FreePages())

    def check() -> None:
        with suppress(OSError):  # no file can be opened at the moment: all descriptors are in use
            trimmer.check()

    check()
    with repeating(loop, SECONDS_BETWEEN, check):
        yield


def resident_bytes() -> int:
    """The resident set size of this process. Raises OSError where the system does not say (proc(5), `statm`)."""
    pages = Path("/proc/self/statm").read_bytes().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")

"""The C library's allocator (glibc): how many arenas it has, and when their free pages go back to the system."""

import ctypes
import os
import threading
import time
from contextlib import suppress
from typing import Any

_MIB = 2**20

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MMAP_BYTES = 8 * _MIB
_TRIM_BYTES = 16 * _MIB
"""Bytes that may be free at the end of an arena before it is returned."""

_ARENAS = 8
_THREADS = 2 * _ARENAS
"""glibc gives a new thread an arena without threads, or else the next in turn: so many use each arena at least once."""

_SMALLEST_END = 128 * 1024
_BLOCK = 70_000
"""Bytes of a block whose release makes glibc look at the end of its arena (64 KiB and more)."""

_ALL_STARTED_WITHIN = 5.0

_SIZES_BY_USERS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
_ARENAS_BY_USERS = ("MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST", "GLIBC_TUNABLES")


def bound_allocator() -> None:
    """Bound what glibc keeps of freed blocks, unless the environment sets it up (mallopt(3)).

    Call it before the process starts threads. By default the first freed block of 32 MB makes later ones come from
    arenas, which fragment: four clients that sent 1 to 30 MB over HTTP and gRPC left 211 MB instead of 128. Messages of
    20 MB cost 40 to 50 % more processor time that way, for new pages; those below 8 MiB, which still come from the
    arenas, cost the same.

    Eight arenas serve all threads instead of eight for each processor, each of which may keep 16 MiB at its end. Two
    would cost a gRPC call of 4 MB a third more, since threads that share an arena return its end all the time.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return
    if not _is_set(_SIZES_BY_USERS):
        set_option(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        set_option(_M_TRIM_THRESHOLD, _TRIM_BYTES)
    if not _is_set(_ARENAS_BY_USERS):
        set_option(_M_ARENA_MAX, _ARENAS)


class FreePages:
    """Gives the free pages of all arenas back to the system (`malloc_trim(3)`), on a thread: 0.1 s for a gigabyte.

    Another thread that needs memory of the arena waits meanwhile. Other allocators have no such function; then nothing
    is done.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._trims_ends = not (_is_set(_SIZES_BY_USERS) or _is_set(_ARENAS_BY_USERS))
        self._can_trim = hasattr(self._library, "malloc_trim")
        self.seconds = 0.0
        """Processor time of `malloc_trim` the last time."""

    def give_back(self) -> threading.Thread | None:
        """Start to give pages back; the thread that does, or None where the allocator cannot."""
        if not self._can_trim:
            return None
        thread = threading.Thread(target=self._give_back, name="naiad-trim", daemon=True)
        thread.start()
        return thread

    def _give_back(self) -> None:
        started = time.thread_time()
        self._library.malloc_trim(0)
        self.seconds = time.thread_time() - started
        if self._trims_ends:
            _trim_ends(self._library)


def _trim_ends(library: Any) -> None:
    """Return the free ends of the arenas of threads, which `malloc_trim` leaves: 16 MiB each (glibc 2.36, `mtrim`).

    glibc returns an end when a block of that arena is freed and the end is larger than the threshold. So lower the
    threshold, and free a block in each arena. 47 of 122 MB were such ends after a minute with messages of 1 to 30 MB.
    """
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.restype = None
    library.free.argtypes = [ctypes.c_void_p]
    together = threading.Barrier(_THREADS)

    def free_block() -> None:
        block = library.malloc(_BLOCK)
        with suppress(threading.BrokenBarrierError):
            together.wait(_ALL_STARTED_WITHIN)
        library.free(block)

    threads = [threading.Thread(target=free_block, name="naiad-trim", daemon=True) for _ in range(_THREADS)]
    library.mallopt(_M_TRIM_THRESHOLD, _SMALLEST_END)
    try:
        _run_all(threads, together)
    finally:
        library.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)


def _run_all(threads: list[threading.Thread], together: threading.Barrier) -> None:
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError:  # the system allows no more threads: those that run trim the ends that they meet
        together.abort()
    for thread in started:
        thread.join()


def _is_set(names: tuple[str, ...]) -> bool:
    return any(name in os.environ for name in names)

"""SIGBUS guard of mapped client memory, which clients may truncate at any time: see `guard.c`."""

import ctypes
import os
import threading
from pathlib import Path

_LIBRARY = Path(__file__).with_name("libguard.so")
_SPANS = 4096

TORN = 1
WRITTEN = 2


class Guard:
    """Guards spans of mapped pages against SIGBUS.

    Where the file was truncated, an access finds zeros, and marks the span as torn. Addresses and sizes are those of
    whole pages. Raises OSError when the library cannot be loaded, or Linux does not say which pages were written to.
    """

    def __init__(self) -> None:
        # with the interpreter's lock held: none of the functions waits, and getting the lock back may take long
        self._library = library = ctypes.PyDLL(str(_LIBRARY))
        library.naiad_guard_cover.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
        library.naiad_guard_detach.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
        self._is_whole = library.naiad_guard_is_whole
        self._is_whole.argtypes = (ctypes.c_int, ctypes.c_longlong)
        self._taken_back = library.naiad_guard_taken_back
        self._taken_back.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t)
        self._torn = memoryview((ctypes.c_uint8 * _SPANS).in_dll(library, "naiad_guard_torn")).cast("B")
        self._pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        self._lock = threading.Lock()

    def cover(self, address: int, byte_size: int) -> int | None:
        """Guard these pages; the number of the span, None when they cannot be guarded."""
        with self._lock:
            if not self._library.naiad_guard_install():
                return None
            span: int = self._library.naiad_guard_cover(address, byte_size)
        return span if span >= 0 else None

    def uncover(self, span: int) -> None:
        """Guard them no more; called before they are unmapped."""
        self._library.naiad_guard_uncover(span)

    def is_torn(self, span: int) -> bool:
        """Whether memory was read or written that was not there any more."""
        return self._torn[span] != 0

    def is_whole(self, descriptor: int, end: int) -> bool:
        """Whether an open file has at least `end` bytes and no holes: touching a hole would allocate memory."""
        return bool(self._is_whole(descriptor, end))

    def taken_back(self, span: int, address: int, byte_size: int) -> int:
        """What became of these pages of that span since they were mapped: `TORN`, `WRITTEN`, both or 0."""
        became: int = self._taken_back(span, self._pagemap, address, byte_size)
        return became

    def detach(self, address: int, byte_size: int) -> bool:
        """Make covered pages the process's own, with what is in them now; False when there is no memory for them."""
        return bool(self._library.naiad_guard_detach(address, byte_size))


def load_guard() -> Guard | None:
    """The guard of this process, None where it was not built."""
    try:
        return Guard()
    except OSError:
        return None


GUARD = load_guard()

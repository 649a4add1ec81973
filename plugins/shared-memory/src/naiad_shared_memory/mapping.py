"""Memory mappings of a client's segment: parts are lent to models without a copy, outputs are written to them.

A model may change an input, keep it, or read it after its client has shortened the segment. So a loan is a private
mapping, whose pages are those of the client until code in the server writes to them. After the execution, before the
client gets its answer, the pages are checked: those that were written to are no longer the client's, and are mapped
anew for the next request; those that are still referenced become the server's own.
"""

import ctypes
import mmap
import os
import resource
import sys
import threading
import weakref

import numpy as np

from naiad_kit.buffers import Buffer
from naiad_shared_memory.extents import is_left
from naiad_shared_memory.guard import TORN, Guard

PAGE = mmap.PAGESIZE
_PAGE_MASK = -PAGE

_ALIGNMENT = 64
"""Bytes to a multiple of which the inputs of models are aligned; frameworks copy, or refuse, what is not."""


_MAPPED_FOR_EVER: list["Mapping"] = []
"""Mappings that were referenced while there was no memory for copies."""


class Mapping:
    """`byte_size` bytes of a client from the address `address` on, whose pages are the guarded span `span`."""

    def __init__(self, guard: Guard, span: int, memory: mmap.mmap, address: int, start: int) -> None:
        weakref.finalize(self, guard.uncover, span)
        self._guard = guard
        self.span = span
        self.address = address + start
        self.view = memoryview(memory)[start:]
        self._array = np.frombuffer(self.view, np.uint8)

    @property
    def is_torn(self) -> bool:
        """Whether the client has taken some of it away, and that was noticed."""
        return self._guard.is_torn(self.span)

    def write(self, offset: int, content: Buffer) -> None:
        """Put the bytes there, as far as there is anything."""
        size = len(content)
        if size:
            np.copyto(self._array[offset : offset + size], np.frombuffer(content, np.uint8))


def mapped(guard: Guard, descriptor: int, start: int, byte_size: int, flags: int) -> Mapping | None:
    """These bytes of an open file, mapped `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`; None where that cannot be."""
    before = start % PAGE
    try:
        spare = os.dup(descriptor)  # the mapping keeps one, too
        os.close(spare)
        if is_reserved(spare):
            return None
        memory = mmap.mmap(
            descriptor, before + byte_size, flags, mmap.PROT_READ | mmap.PROT_WRITE, offset=start - before
        )
    except (OSError, ValueError):  # the latter where the file is too short
        return None
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    span = guard.cover(address, _pages_end(len(memory)))
    return None if span is None else Mapping(guard, span, memory, address, before)


def is_reserved(descriptor: int) -> bool:
    """Whether it is among the last quarter that the process may have, which is kept for other things than segments.

    A new descriptor is the lowest free one, so it says how many there are.
    """
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most != resource.RLIM_INFINITY and descriptor >= most - most // 4


class Loan:
    """Some bytes of a mapping, lent to one model until `end`.

    numpy makes `array` (uint8) the base of every view, so its reference count says whether any is left. `start` and
    `stop` are the addresses of the pages that the bytes lie on.
    """

    __slots__ = ("_lender", "_mapping", "array", "is_torn", "start", "stop")

    def __init__(self, lender: "Lender", mapping: Mapping, offset: int, byte_size: int) -> None:
        address = mapping.address + offset
        self.start = address & _PAGE_MASK
        self.stop = _pages_end(address + byte_size)
        self.array = np.frombuffer(mapping.view, np.uint8, byte_size, offset)
        self.is_torn = False
        self._lender = lender
        self._mapping = mapping

    def end(self) -> bool:
        """Take the bytes back, once the kernel itself holds nothing of them; called once.

        Whether they were read and nothing else. Else this is their last loan; `is_torn` says whether the client has
        taken some of the mapping away, and that was noticed.
        """
        return self._lender.take_back(self, self._mapping, sys.getrefcount(self.array) > _ALONE)


class Lender:
    """Lends parts of a file, each to one model at a time, from one mapping for as long as its pages are the file's.

    For any thread.
    """

    def __init__(self, guard: Guard, descriptor: int, start: int, byte_size: int) -> None:
        self._guard = guard
        self._descriptor = descriptor
        self._start = start
        self._size = byte_size
        self._end = start + byte_size
        self._lock = threading.Lock()
        self._mapping: Mapping | None = None
        self._lent: list[Loan] = []

    def lend(self, offset: int, byte_size: int) -> Loan | None:
        """These bytes, None where they cannot be lent now."""
        if not self._guard.is_whole(self._descriptor, self._end):
            return None
        with self._lock:
            mapping = self._mapping
            if mapping is None:
                mapping = self._mapping = mapped(
                    self._guard, self._descriptor, self._start, self._size, mmap.MAP_PRIVATE
                )
                self._lent = []
            if mapping is None or (mapping.address + offset) % _ALIGNMENT:
                return None
            loan = Loan(self, mapping, offset, byte_size)
            for other in self._lent:
                if loan.start < other.stop and other.start < loan.stop:
                    return None
            self._lent.append(loan)
            return loan

    def take_back(self, loan: Loan, mapping: Mapping, kept: bool) -> bool:
        """A loan has ended, whose bytes may be referenced; whether they were read and nothing else."""
        start, size = loan.start, loan.stop - loan.start
        became = self._guard.taken_back(mapping.span, start, size)
        if kept and not (is_left(size) and self._guard.detach(start, size)):
            _MAPPED_FOR_EVER.append(mapping)  # the model that keeps them sees what the client does
        with self._lock:
            if self._mapping is mapping:
                self._lent.remove(loan)
                if kept or became:
                    self._mapping = None
        loan.is_torn = bool(became & TORN)
        return not (kept or became)


def _pages_end(byte_count: int) -> int:
    return (byte_count + PAGE - 1) & _PAGE_MASK


class _Alone:
    """An object with the only reference to its `array`."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = np.empty(1)

    def references(self) -> int:
        """How many `Loan.end` counts then; it differs between versions of Python."""
        return sys.getrefcount(self.array)


_ALONE = _Alone().references()

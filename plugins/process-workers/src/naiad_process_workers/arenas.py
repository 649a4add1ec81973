"""Arenas: sealed memory that one process writes and another reads, and the blocks in it.

An arena is a `memfd` that cannot shrink or grow any more, so that no reader can be ended by a truncation. It has no
name, and is gone with the last process that has it. The writer owns its blocks: it hands a block over with a message,
and takes it back when the reader says that its arrays are gone. What a dead reader held is freed with the arenas.
"""

import fcntl
import itertools
import mmap
import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from naiad_process_workers.frames import LinkBrokenError, LinkClosedError

_ALIGNMENT = 64
SMALLEST_ARENA = 4 << 20
_KEPT = 64 << 20
"""Bytes of arenas that stay when all their blocks are free; memory that was never written to takes no room."""

FIRST_SHARED = 1 << 32
"""Arenas that several processes and connections read have numbers from here on."""

LARGE_BLOCK = 1 << 20
"""That such a block is free is reported: its memory does not wait for the next message."""

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class BlockAllocator:
    """Which parts of a range of bytes are in use: the first block that fits, and neighbours join when they are free."""

    def __init__(self, size: int) -> None:
        self._free = [(0, size)]  # (offset, size), by offset
        self._used: dict[int, int] = {}

    def __bool__(self) -> bool:
        """Whether any block is in use."""
        return bool(self._used)

    def allocate(self, size: int) -> int | None:
        """The offset of a block of at least that size, None if there is none."""
        size = max(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT)
        for index, (offset, available) in enumerate(self._free):
            if available < size:
                continue
            if available == size:
                del self._free[index]
            else:
                self._free[index] = (offset + size, available - size)
            self._used[offset] = size
            return offset
        return None

    def free(self, offset: int) -> None:
        """Take a block back. Raises KeyError for an offset at which no block in use begins."""
        size = self._used.pop(offset)
        index = bisect_left(self._free, (offset, 0))
        if index < len(self._free) and self._free[index][0] == offset + size:
            size += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == offset:
            before, length = self._free[index - 1]
            self._free[index - 1] = (before, length + size)
        else:
            self._free.insert(index, (offset, size))


class Arena:
    """An arena that this process writes; it goes to the reader over one `channel`, before any block in it."""

    def __init__(self, number: int, size: int, channel: object) -> None:
        self.number, self.size, self.channel = number, size, channel
        self.blocks = BlockAllocator(size)
        name = "naiad-bodies" if number >= FIRST_SHARED else "naiad-arena"
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
            self._map = mmap.mmap(self.descriptor, size)
        except BaseException:
            os.close(self.descriptor)
            raise
        self.bytes = np.frombuffer(self._map, np.uint8)
        self.address = self.bytes.ctypes.data
        self.closed = False

    def close(self) -> None:
        """Give the memory up; the reader has it for as long as it reads."""
        self.closed = True
        del self.bytes
        with suppress(BufferError):  # another thread copies into it: it goes with that thread's reference
            self._map.close()
        with suppress(OSError):
            os.close(self.descriptor)


class OwnArenas:
    """The arenas that this process writes for others. `next_number` numbers them. For any thread.

    `size` are the bytes of all arenas.
    """

    def __init__(self, next_number: Callable[[], int] | None = None) -> None:
        self.size = 0
        self._lock = threading.RLock()
        self._arenas: dict[int, Arena] = {}
        self._next_number = next_number or itertools.count(1).__next__
        self._closed = False

    def allocate(self, size: int, channel: object, announce: Callable[[Arena], None]) -> tuple[Arena, int]:
        """A block in an arena of that channel; a new arena is announced first.

        Raises OSError without memory or descriptors, and LinkClosedError once this is closed.
        """
        with self._lock:
            if self._closed:
                raise LinkClosedError("the arenas are closed")
            for arena in self._arenas.values():
                if arena.channel is channel and (offset := arena.blocks.allocate(size)) is not None:
                    return arena, offset
            arena = Arena(self._next_number(), max(SMALLEST_ARENA, 1 << (size - 1).bit_length()), channel)
            self._arenas[arena.number] = arena
            self.size += arena.size
            announce(arena)
            offset = arena.blocks.allocate(size)
        assert offset is not None  # noqa: S101 - it is empty and large enough
        return arena, offset

    def locate(self, address: int, size: int) -> tuple[Arena, int] | None:
        """The arena with so many bytes at that address, and their offset in it."""
        for arena in list(self._arenas.values()):
            offset = address - arena.address
            if offset >= 0 and offset + size <= arena.size:
                return arena, offset
        return None

    def free(self, blocks: Iterable[tuple[int, int]]) -> list[int]:
        """Take blocks back, by arena and offset; the numbers of arenas that go with them. Raises LinkBrokenError."""
        with self._lock:
            for number, offset in blocks:
                arena = self._arenas.get(number)
                try:
                    if arena is None:
                        raise KeyError(number)
                    arena.blocks.free(offset)
                except KeyError:
                    raise LinkBrokenError(f"a block at {offset} of arena {number} was freed twice") from None
            return self._close_idle() if self.size > _KEPT else []

    def close(self) -> None:
        """Free all of it: the reader is gone."""
        with self._lock:
            self._closed = True
            for arena in self._arenas.values():
                arena.close()
            self._arenas.clear()
            self.size = 0

    def _close_idle(self) -> list[int]:
        """Give up arenas without blocks, the largest first, down to what is kept; their numbers."""
        closed = []
        idle = [arena for arena in self._arenas.values() if not arena.blocks]
        for arena in sorted(idle, key=lambda each: each.size, reverse=True):
            if self.size <= _KEPT:
                break
            self.size -= arena.size
            del self._arenas[arena.number]
            arena.close()
            closed.append(arena.number)
        return closed


class Freed(Protocol):
    """Where the keys of blocks go that are free."""

    def append(self, key: tuple[int, int], /) -> None:
        """A block is free: its arena and offset. On any thread."""
        ...


class _Block:
    """The owner of an array in an arena: when the last array over it is gone, the block is free."""

    __slots__ = ("__array_interface__", "_freed", "_mapping", "key")

    def __init__(self, interface: dict[str, Any], mapping: object, key: tuple[int, int], freed: Any) -> None:
        self.__array_interface__ = interface
        self._mapping = mapping
        self.key = key
        self._freed = freed

    def __del__(self) -> None:
        self._freed.append(self.key)


def block_array(mapping: np.ndarray, key: tuple[int, int], freed: Freed, offset: int, size: int) -> np.ndarray:
    """A writable array over a block of a mapping; its key is added to `freed` when the last view of it is gone."""
    address = mapping.__array_interface__["data"][0] + offset
    interface = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}
    return np.asarray(_Block(interface, mapping, key, freed))


def shared_block(array: np.ndarray) -> tuple[int, int] | None:
    """The arena and offset of the block of a shared arena at whose begin an array that was received begins."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if not isinstance(owner, _Block) or owner.key[0] < FIRST_SHARED:
        return None
    begins = array.__array_interface__["data"][0] == owner.__array_interface__["data"][0]
    return owner.key if begins else None


class ReadArenas:
    """The arenas of the other process. `freed` are the blocks whose arrays are gone; any thread adds to it."""

    def __init__(self, writable: bool = False, lent: Callable[[int, int, int], np.ndarray] | None = None) -> None:
        """`writable` says that this process alone reads the blocks, and may write to their arrays.

        `lent(arena, offset, size)` are the bytes of a block of this process's own that the other one has.
        """
        self.writable = writable
        self._lent = lent
        self.freed: deque[tuple[int, int]] = deque()
        self._large: Freed = self.freed
        self._maps: dict[int, tuple[np.ndarray, int]] = {}  # with its address

    def report_large(self, freed: Freed) -> None:
        """Hand blocks of `LARGE_BLOCK` bytes and more to `freed` from now on; it adds them to those of this."""
        self._large = freed

    def open(self, number: int, size: int, descriptor: int) -> None:
        """Map an arena; its descriptor is closed. Raises LinkBrokenError for memory that is not sealed."""
        try:
            seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
            if number in self._maps and number >= FIRST_SHARED:
                return  # another connection has announced it
            if seals & _SEALS != _SEALS or os.fstat(descriptor).st_size != size or number in self._maps:
                raise LinkBrokenError(f"arena {number} is not sealed, or not of {size} bytes")
            mapping = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
            self._maps[number] = mapping, mapping.ctypes.data
        except (OSError, ValueError) as error:
            raise LinkBrokenError(f"arena {number} cannot be mapped: {error}") from error
        finally:
            os.close(descriptor)

    def array(self, number: int, offset: int, size: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """An array over a block, which is free when the array and its views are gone.

        Raises LinkBrokenError for a block outside of its arena.
        """
        mapping, address = self._maps.get(number, (None, 0))
        if mapping is None and self._lent is not None and number >= FIRST_SHARED:
            return self._lent(number, offset, size).view(dtype).reshape(shape)
        if mapping is None or offset < 0 or offset + size > mapping.nbytes:
            raise LinkBrokenError(f"there is no block of {size} bytes at {offset} of arena {number}")
        interface = {
            "data": (address + offset, not self.writable),
            "shape": shape,
            "typestr": dtype.str,
            "version": 3,
        }
        return np.asarray(_Block(interface, mapping, (number, offset), self._freed_of(size)))

    def free(self, key: tuple[int, int], size: int) -> None:
        """Say with the next message that a block was read; soon where it is large."""
        self._freed_of(size).append(key)

    def _freed_of(self, size: int) -> Freed:
        return self.freed if size < LARGE_BLOCK else self._large

    def retire(self, number: int) -> None:
        """Unmap an arena when the last array in it is gone."""
        self._maps.pop(number, None)

    def close(self) -> None:
        """Unmap all, each when the last array in it is gone; report no more."""
        self._maps.clear()
        self._large = self.freed

    def __len__(self) -> int:
        return len(self._maps)

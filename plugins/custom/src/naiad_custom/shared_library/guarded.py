"""Guarded output memory: guard bytes before and behind it show writes out of bounds."""

import ctypes

FRONT = 64
"""Guarded bytes before the memory; it begins at a multiple of this."""

BACK = 4096
"""Guarded bytes behind it: a row too many is found, and does no harm, up to this size."""

_PATTERN = bytes((0xA5, 0x5A, 0xC3)) * (BACK // 3 + 1)
_FRONT = _PATTERN[:FRONT]
_BACK = _PATTERN[:BACK]
_of_buffer = ctypes.c_char.from_buffer
_address = ctypes.addressof


class GuardedMemory:
    """`size` zeroed bytes at `address`, which are `memory[start : start + size]`. Raises MemoryError.

    Zeroed, so that what a library leaves out shows nobody what the memory held before.
    """

    __slots__ = ("address", "memory", "size", "start")

    def __init__(self, size: int) -> None:
        self.memory = bytearray(2 * FRONT + size + BACK)
        base_address = _address(_of_buffer(self.memory))
        self.start = FRONT + -base_address % FRONT
        self.size = size
        self.address = base_address + self.start
        self.memory[self.start - FRONT : self.start] = _FRONT
        end = self.start + size
        self.memory[end : end + BACK] = _BACK

    @property
    def is_whole(self) -> bool:
        """Whether both guards are as they were."""
        starts = self.memory.startswith
        return starts(_BACK, self.start + self.size) and starts(_FRONT, self.start - FRONT)

    def trespass(self) -> tuple[int, int]:
        """How many bytes before the memory, and how many behind it, were written to, at least."""
        end = self.start + self.size
        before = self.memory[self.start - FRONT : self.start]
        behind = self.memory[end : end + BACK]
        first = next((FRONT - at for at in range(FRONT) if before[at] != _FRONT[at]), 0)
        last = next((at + 1 for at in reversed(range(BACK)) if behind[at] != _BACK[at]), 0)
        return first, last

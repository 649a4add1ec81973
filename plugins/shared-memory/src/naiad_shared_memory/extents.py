"""Bounds checks of offsets and sizes in a region, for integers of any size."""

import numpy as np

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_shared_memory.free_memory import free_bytes

LARGEST = 2**64 - 1
"""The largest offset, size and sum of both that the protocol can say."""

_ASKED_FOR = 64 * 2**20
"""So large a copy is only made when that much memory is left: a segment need not have any behind it."""


def check_extent(name: str, offset: int, byte_size: int) -> None:
    """Raise InvalidArgumentError unless a region called `name` may be that part of a segment."""
    _check_overflow(name, offset, byte_size)
    if offset < 0 or byte_size < 1:
        raise InvalidArgumentError(
            f"failed to register shared memory region '{name}': invalid args: "
            f"the offset is {offset} and the byte size {byte_size}, and must be at least 0 and 1"
        )


def check_piece(name: str, region_size: int, offset: int, byte_size: int) -> None:
    """Raise InvalidArgumentError unless these bytes lie within a region of `region_size` bytes called `name`."""
    if not 0 <= offset < region_size:
        raise InvalidArgumentError(
            f"Invalid offset for shared memory region: '{name}': the offset is {offset}, the region has "
            f"{region_size} bytes"
        )
    if byte_size < 0 or offset + byte_size > region_size:
        _check_overflow(name, offset, byte_size)
        raise InvalidArgumentError(
            f"Invalid offset + byte size for shared memory region: '{name}': {byte_size} bytes from {offset} on do "
            f"not lie within its {region_size} bytes"
        )


def check_room(name: str, output: str, needed: int, byte_size: int) -> None:
    """Raise InvalidArgumentError unless an output of `needed` bytes fits into the `byte_size` bytes meant for it."""
    if needed > byte_size:
        raise InvalidArgumentError(
            f"shared memory size specified with the request for output '{output}' ({byte_size} bytes) should be at "
            f"least {needed} bytes to hold the results; give it more of region '{name}'"
        )


def host_bytes(name: str, byte_size: int) -> np.ndarray:
    """An array to copy that much of region `name` into. Raises UnavailableError when the memory is not there.

    A fresh one costs as little as one of a pool (600 KB: 45 µs to fill either, measured): the allocator keeps them.
    """
    if byte_size >= _ASKED_FOR:
        available = free_bytes()
        if available is not None and byte_size > available:
            raise UnavailableError(
                f"the server has no memory for a copy of {byte_size} bytes of shared memory region '{name}': "
                f"{available} are left"
            )
    try:
        return np.empty(byte_size, np.uint8)
    except MemoryError as error:
        raise UnavailableError(
            f"the server has no memory for a copy of {byte_size} bytes of shared memory region '{name}'"
        ) from error


def is_left(byte_size: int) -> bool:
    """Whether that much memory can be had, as far as the system says."""
    if byte_size < _ASKED_FOR:
        return True
    available = free_bytes()
    return available is None or byte_size <= available


def _check_overflow(name: str, offset: int, byte_size: int) -> None:
    if offset + byte_size > LARGEST:
        raise InvalidArgumentError(
            f"Integer overflow detected: byte_size ({byte_size}) + offset ({offset}) exceeds maximum value "
            f"({LARGEST}) for region '{name}'"
        )

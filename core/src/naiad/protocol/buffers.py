"""The datatypes whose arrays are more than a view on the wire's bytes: BYTES and BOOL.

A BYTES element is its length, an unsigned 32-bit little-endian integer, and then itself; a BOOL is one byte.
"""

from collections.abc import Iterable
from struct import Struct

import numpy as np

from naiad.errors import InvalidArgumentError

_LENGTH = Struct("<I")
Buffer = bytes | bytearray | memoryview


def unpack_strings(content: Buffer, count: int, name: str, model: str) -> np.ndarray:
    """The flat object array of `count` elements (`bytes`, copies) that `content` holds.

    Raises InvalidArgumentError when it holds fewer or more than `count`, or ends within one.
    """
    elements: list[bytes] = []
    add = elements.append
    place, end = 0, len(content)
    while place < end:
        if end - place < 4:
            raise InvalidArgumentError(
                f"incomplete string length indicator for inference input '{name}' for model '{model}', "
                f"expecting 4 bytes but only {end - place} bytes available; every element needs its length in front"
            )
        (length,) = _LENGTH.unpack_from(content, place)
        place += 4
        if end - place < length:
            raise InvalidArgumentError(
                f"incomplete string data for inference input '{name}' for model '{model}', "
                f"expecting string of length {length} but only {end - place} bytes available"
            )
        if len(elements) == count:
            raise InvalidArgumentError(
                f"unexpected number of string elements {count + 1} for inference input '{name}' for model '{model}', "
                f"expecting {count}"
            )
        add(bytes(content[place : place + length]))
        place += length
    if len(elements) != count:
        raise InvalidArgumentError(
            f"expected {count} string elements for inference input '{name}' for model '{model}', got {len(elements)}"
        )
    return object_array(elements)


def pack_strings(elements: Iterable[bytes | str]) -> bytes:
    """The elements one after the other, each behind its length; `str` as UTF-8."""
    parts: list[bytes] = []
    for element in elements:
        packed = element.encode() if isinstance(element, str) else element
        parts += (_LENGTH.pack(len(packed)), packed)
    return b"".join(parts)


def object_array(elements: list[bytes]) -> np.ndarray:
    """A flat object array of these `bytes`."""
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array


def bool_array(shape: tuple[int, ...], content: Buffer, start: int = 0) -> np.ndarray:
    """A bool array of that shape over `content` from `start`; a copy only where a byte is neither 0 nor 1.

    numpy computes nonsense with other bytes in a bool array, and clients may send any.
    """
    bits = np.ndarray(shape, np.uint8, content, start)
    return bits != 0 if (bits > 1).any() else bits.view(np.bool_)

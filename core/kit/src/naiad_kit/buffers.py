"""Wire form of BYTES and BOOL tensors, whose arrays are more than a view on the bytes.

A BYTES element is its length, an unsigned 32-bit little-endian integer, and then itself; a BOOL is one byte.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812 - a name of its own, as other errors have

import numpy as np

from naiad.errors import InvalidArgumentError

_LENGTH = Struct("<I")
_PIECE = 262144
Buffer = bytes | bytearray | memoryview


def total_size(buffers: Sequence[Buffer]) -> int:
    """The bytes of all of them; most messages are one buffer, of which `sum` and `map` would take twice as long."""
    return len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))


def unpack_strings(content: Buffer, count: int, name: str, model: str) -> np.ndarray:
    """The flat object array of `count` elements (`bytes`, copies) that `content` holds.

    Raises InvalidArgumentError when it holds fewer or more than `count`, or ends within one.
    """
    content = bytes(content)  # slices of it are elements; no copy of what is `bytes` already
    elements: list[bytes] = []
    add, length_at = elements.append, _LENGTH.unpack_from
    offset = 0
    try:
        for _ in range(count):
            start = offset + 4
            offset = start + length_at(content, offset)[0]
            add(content[start:offset])
    except StructError:
        offset = -1
    if offset != len(content):
        raise _wrong_strings(content, count, name, model)
    return object_array(elements)


def _wrong_strings(content: bytes, count: int, name: str, model: str) -> InvalidArgumentError:
    """What is wrong with elements that do not fill their content."""
    offset, end, elements = 0, len(content), 0
    while offset < end:
        if end - offset < 4:
            return InvalidArgumentError(
                f"incomplete string length indicator for inference input '{name}' for model '{model}', "
                f"expecting 4 bytes but only {end - offset} bytes available; every element needs its length in front"
            )
        (length,) = _LENGTH.unpack_from(content, offset)
        offset += 4
        if end - offset < length:
            return InvalidArgumentError(
                f"incomplete string data for inference input '{name}' for model '{model}', "
                f"expecting string of length {length} but only {end - offset} bytes available"
            )
        if elements == count:
            return InvalidArgumentError(
                f"unexpected number of string elements {count + 1} for inference input '{name}' for model '{model}', "
                f"expecting {count}"
            )
        elements += 1
        offset += length
    return InvalidArgumentError(
        f"expected {count} string elements for inference input '{name}' for model '{model}', got {elements}"
    )


def pack_strings(elements: Iterable[bytes | str]) -> bytes:
    """The elements one after the other, each behind its length; `str` as UTF-8."""
    parts: list[bytes] = []
    for element in elements:
        packed = element.encode() if isinstance(element, str) else element
        parts += (_LENGTH.pack(len(packed)), packed)
    return b"".join(parts)


def object_array(elements: Sequence[bytes]) -> np.ndarray:
    """A flat object array of these `bytes`."""
    array = np.empty(len(elements), dtype=object)
    for start in range(0, len(elements), _PIECE):  # each call keeps the interpreter's lock
        array[start : start + _PIECE] = elements[start : start + _PIECE]
    return array


def bool_array(shape: tuple[int, ...], content: Buffer, start: int = 0) -> np.ndarray:
    """A bool array of that shape over `content` from `start`; a copy only where a byte is neither 0 nor 1.

    numpy computes nonsense with other bytes in a bool array, and clients may send any.
    """
    bits = np.ndarray(shape, np.uint8, content, start)
    return bits != 0 if (bits > 1).any() else bits.view(np.bool_)

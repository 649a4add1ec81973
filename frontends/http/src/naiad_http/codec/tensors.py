"""Decoder of the `data` of JSON tensors to numpy arrays: any nesting, every datatype of JSON, nothing truncated."""

import struct
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad_http.codec.documents import MAX_DEPTH, as_array, too_deep
from naiad_kit.buffers import Buffer, object_array
from naiad_tensors.datatypes import TensorType


class _Packing(NamedTuple):
    """The `struct` code of a datatype, the types that JSON has for it, and their name in errors.

    `struct` refuses values out of range, which numpy does not, and takes half the time.
    """

    code: str
    types: frozenset[type]
    expected: str


_PACKINGS = {
    "BOOL": _Packing("?", frozenset((bool,)), "true or false"),
    "FP32": _Packing("f", frozenset((int, float)), "numbers"),
    "FP64": _Packing("d", frozenset((int, float)), "numbers"),
} | {
    wire: _Packing(code, frozenset((int,)), "integers")
    for wire, code in zip(
        ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64"), "bBhHiIqQ", strict=True
    )
}
_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs
_PIECE = 262144
"""Elements of one call, which holds the interpreter's lock: 3 ms to 30 ms."""

ONLY_BINARY = frozenset(("FP16", "BF16"))
"""The datatypes that JSON cannot carry."""


def array_of_json(data: Any, name: str, kind: TensorType, shape: tuple[int, ...], count: int, limit: int) -> np.ndarray:
    """The read-only array of that shape with the `count` elements of `data`, in row-major order and nested in any way.

    Raises TooLargeError if the array takes more than `limit` bytes, and InvalidArgumentError for a wrong number, type
    or range of the elements, or for nesting deeper than MAX_DEPTH.
    """
    if kind.wire == "BYTES":
        elements, kinds = _elements_of(data, name, kind, count, limit)
        return _strings(elements, kinds, name).reshape(shape)
    return _ndarray(shape, kind.dtype, bytes_of_json(data, name, kind, count, limit))


def bytes_of_json(data: Any, name: str, kind: TensorType, count: int, limit: int) -> Buffer:
    """As `array_of_json`, but as little-endian bytes; `kind` is not BYTES."""
    if kind.wire in ONLY_BINARY:
        raise InvalidArgumentError(
            f"receiving {kind.wire} data via JSON is not supported. "
            f"Please use the binary data format for input '{name}'"
        )
    elements, kinds = _elements_of(data, name, kind, count, limit)
    return _packed(elements, kinds, name, kind)


def _elements_of(data: Any, name: str, kind: TensorType, count: int, limit: int) -> tuple[list[Any], set[type]]:
    """The `count` elements of `data` in row-major order, and the set of their types."""
    elements = data if type(data) is list else as_array(data, "data of an input")
    if len(elements) > _PIECE or list in (kinds := set(map(type, elements))):
        elements, kinds = flatten(elements)
    if len(elements) != count:
        raise InvalidArgumentError(
            f"Unable to parse 'data': Shape does not match true shape of 'data' field of input '{name}': "
            f"the shape asks for {count} elements, the data has {len(elements)}"
        )
    if count * kind.itemsize > limit:
        raise TooLargeError(
            f"input '{name}' needs {count * kind.itemsize} bytes, which exceeds the maximum allowed input size of "
            f"{limit} bytes. Use --http-max-input-size to increase the limit."
        )
    return elements, kinds


def flatten(data: list[Any]) -> tuple[list[Any], set[type]]:
    """The innermost elements in row-major order and the set of their types; lists and values may be mixed."""
    kinds = set(map(type, data)) if len(data) <= _PIECE else _types_of(data)
    if list not in kinds:
        return data, kinds
    depth = 1
    while kinds == {list}:
        depth += 1
        if depth > MAX_DEPTH:
            raise too_deep()
        data = list(chain.from_iterable(data))
        kinds = _types_of(data)
    if list in kinds:
        data = _flatten_mixed(data, MAX_DEPTH - depth)
        kinds = _types_of(data)
    return data, kinds


def _types_of(data: list[Any]) -> set[type]:
    return set().union(*(set(map(type, data[start : start + _PIECE])) for start in range(0, len(data), _PIECE)))


def _flatten_mixed(data: list[Any], depth: int) -> list[Any]:
    """The elements of mixed lists and values, in one depth-first pass; a pass for each level would take n * depth."""
    elements: list[Any] = []
    open_lists = [iter(data)]
    while open_lists:
        for value in open_lists[-1]:
            if type(value) is list:
                if len(open_lists) > depth:
                    raise too_deep()
                open_lists.append(iter(value))
                break
            elements.append(value)
        else:
            open_lists.pop()
    return elements


def _packed(elements: list[Any], kinds: set[type], name: str, kind: TensorType) -> Buffer:
    code, types, expected = _PACKINGS[kind.wire]
    if not kinds <= types:
        raise _wrong_type(elements, types, name, expected)
    try:
        if len(elements) <= _PIECE:
            return struct.pack(f"<{len(elements)}{code}", *elements)
        return _packed_in_pieces(elements, code, kind.itemsize)
    except (struct.error, OverflowError) as error:
        raise _out_of_range(elements, name, kind) from error


def _packed_in_pieces(elements: list[Any], code: str, itemsize: int) -> memoryview:
    packed = bytearray(len(elements) * itemsize)
    for start in range(0, len(elements), _PIECE):
        piece = elements[start : start + _PIECE]
        struct.pack_into(f"<{len(piece)}{code}", packed, start * itemsize, *piece)
    return memoryview(packed).toreadonly()


def _strings(elements: list[Any], kinds: set[type], name: str) -> np.ndarray:
    if not kinds <= {str}:
        raise _wrong_type(elements, frozenset((str,)), name, "strings")
    return object_array([element.encode() for element in elements])


def _out_of_range(elements: list[Any], name: str, kind: TensorType) -> InvalidArgumentError:
    limits = np.finfo(kind.dtype) if kind.dtype.kind == "f" else np.iinfo(kind.dtype)
    wrong = next(element for element in elements if not _fits(element, _PACKINGS[kind.wire].code))
    return InvalidArgumentError(
        f"input '{name}' has the value {wrong!s:.40}, but {kind.wire} goes from {limits.min} to {limits.max}"
    )


def _fits(element: Any, code: str) -> bool:
    try:
        struct.pack(f"<{code}", element)
    except (struct.error, OverflowError):
        return False
    return True


def _wrong_type(elements: list[Any], types: frozenset[type], name: str, expected: str) -> InvalidArgumentError:
    wrong = next(element for element in elements if type(element) not in types)
    written = _IN_JSON.get(repr(wrong)) or f"{wrong!r:.80}"
    return InvalidArgumentError(f"Unable to parse 'data': input '{name}' takes {expected}, got {written}")


_IN_JSON = {"True": "true", "False": "false", "None": "null"}
"""Python's constants as the client wrote them."""

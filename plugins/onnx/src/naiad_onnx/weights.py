"""How much memory the weights of an ONNX file take, read from its wire format: the tensors themselves are skipped.

The numbers of fields and types are those of `onnx.proto` (ModelProto.graph 7; GraphProto.initializer 5 and
sparse_initializer 15; TensorProto.dims 1, data_type 2; SparseTensorProto.values 1, indices 2).
"""

import mmap
from collections.abc import Iterator
from math import prod
from pathlib import Path

_GRAPH = 7
_INITIALIZER = 5
_SPARSE_INITIALIZER = 15
_DIMS = 1
_DATA_TYPE = 2
_STRING = 8
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_BITS = {
    **dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((7, 11, 13, 14), 64),
    15: 128,
    **dict.fromkeys((21, 22, 23), 4),
    **dict.fromkeys((25, 26), 2),
}
"""Bits of an element by `TensorProto.DataType`, strings left out."""


def weight_bytes(path: Path) -> int:
    """The bytes of the initializers, external ones included; the size of the file where it is of another format."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return sum(_in_graph(content, *graph) for graph in _messages(content, 0, len(content), _GRAPH))
    except (IndexError, ValueError):
        return path.stat().st_size


def _in_graph(content: mmap.mmap, start: int, end: int) -> int:
    dense = list(_messages(content, start, end, _INITIALIZER))
    for sparse in _messages(content, start, end, _SPARSE_INITIALIZER):
        dense += [*_messages(content, *sparse, 1), *_messages(content, *sparse, 2)]
    return sum(_in_tensor(content, *tensor) for tensor in dense)


def _in_tensor(content: mmap.mmap, start: int, end: int) -> int:
    dims: list[int] = []
    kind = 0
    for field, wire, at, until in _fields(content, start, end):
        if field == _DIMS:
            dims += _varints(content, at, until) if wire == _LENGTH else [_varint(content, at)[0]]
        elif field == _DATA_TYPE:
            kind = _varint(content, at)[0]
    return end - start if kind == _STRING else (prod(dims) * _BITS.get(kind, 0) + 7) // 8


def _messages(content: mmap.mmap, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Where each message of that field begins and ends."""
    return ((at, until) for field, _, at, until in _fields(content, start, end) if field == wanted)


def _fields(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number and wire type of each field, and where its value begins and ends. Raises ValueError for no protobuf."""
    at = start
    while at < end:
        key, at = _varint(content, at)
        field, wire = key >> 3, key & 7
        if wire == _LENGTH:
            length, at = _varint(content, at)
            until = at + length
        elif wire == _VARINT:
            until = _varint(content, at)[1]
        elif wire in (_FIXED64, _FIXED32):
            until = at + (8 if wire == _FIXED64 else 4)
        else:
            raise ValueError(f"there is no wire type {wire}")
        if until > end:
            raise ValueError("a field is cut")
        yield field, wire, at, until
        at = until


def _varints(content: mmap.mmap, start: int, end: int) -> Iterator[int]:
    at = start
    while at < end:
        value, at = _varint(content, at)
        yield value


def _varint(content: mmap.mmap, at: int) -> tuple[int, int]:
    """The number there, and where it ends."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is longer than ten bytes")

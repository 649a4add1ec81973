"""Decoder of `InferTensorContents`, the typed contents of a tensor, to a numpy array."""

from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_kit.buffers import object_array
from naiad_tensors.datatypes import TensorType

_PIECE = 65536
"""Elements that are converted at a time: each conversion holds the interpreter's lock."""

_FIELDS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
_DATATYPES = {
    "bool_contents": "BOOL",
    "int_contents": "INT32",
    "int64_contents": "INT64",
    "uint_contents": "UINT32",
    "uint64_contents": "UINT64",
    "fp32_contents": "FP32",
    "fp64_contents": "FP64",
    "bytes_contents": "BYTES",
}


def array_of_contents(
    contents: Any, name: str, kind: TensorType, shape: tuple[int, ...], count: int, model: str
) -> np.ndarray:
    """The array of that shape with the `count` elements in the field for its datatype.

    Raises InvalidArgumentError for elements in another field, for more or fewer of them, for one that the datatype
    cannot hold, and for a datatype without a field (FP16, BF16).
    """
    expected = _FIELDS.get(kind.wire)
    present = [descriptor.name for descriptor, _ in contents.ListFields()]
    other = next((field for field in present if field != expected), None)
    if expected is None:
        raise InvalidArgumentError(
            f"unexpected explicit tensor data for input tensor '{name}' for model '{model}': there is no field for "
            f"datatype '{kind.wire}'. Please use raw_input_contents for it"
        )
    if other is not None:
        raise InvalidArgumentError(
            f"unexpected explicit tensor data for input tensor '{name}' for model '{model}' of type "
            f"'{_DATATYPES[other]}', expected datatype '{kind.wire}'; its elements belong in {expected}"
        )
    elements = getattr(contents, expected)
    if len(elements) != count:
        raise _wrong_count(len(elements), count, name, kind, model)
    if kind.wire == "BYTES":
        return object_array(elements).reshape(shape)
    return _numbers(elements, name, kind).reshape(shape)


def _numbers(elements: Any, name: str, kind: TensorType) -> np.ndarray:
    array = np.empty(len(elements), _ON_WIRE[_FIELDS[kind.wire]])
    for start in range(0, len(elements), _PIECE):
        array[start : start + _PIECE] = elements[start : start + _PIECE]
    if array.dtype == kind.dtype:
        return array
    narrowed = array.astype(kind.dtype)
    wrong = narrowed != array
    if wrong.any():
        limits = np.iinfo(kind.dtype)
        raise InvalidArgumentError(
            f"input '{name}' has the value {array[wrong][0]}, but {kind.wire} goes from {limits.min} to {limits.max}"
        )
    return narrowed


_ON_WIRE = {
    field: np.dtype(wire.lower().replace("fp", "float"))
    for field, wire in _DATATYPES.items()
    if field != "bytes_contents"
}


def _wrong_count(got: int, count: int, name: str, kind: TensorType, model: str) -> InvalidArgumentError:
    if kind.wire == "BYTES":
        return InvalidArgumentError(
            f"expected {count} string elements for inference input '{name}' for model '{model}', got {got}"
        )
    return InvalidArgumentError(
        f"input byte size mismatch for input '{name}' for model '{model}'. "
        f"Expected {count * kind.itemsize}, got {got * kind.itemsize}: {got} elements in {_FIELDS[kind.wire]}"
    )

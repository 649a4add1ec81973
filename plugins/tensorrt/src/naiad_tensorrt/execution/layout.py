"""Memory layouts of engine tensors: linear, channels last, or vectorised channels. Pure.

Source of the layouts: the documentation of `TensorFormat` in TensorRT's Python API.
"""

from math import prod

import numpy as np

from naiad.errors import UnsupportedError
from naiad_config import DataType
from naiad_tensorrt.description import EngineTensor, Shape
from naiad_tensors.datatypes import tensor_type, wire_name

_CHANNELS_LAST = {"HWC": (3, 1), "HWC8": (3, 8), "HWC16": (3, 16), "DHWC": (4, 1), "DHWC8": (4, 8)}
_SIDE_BY_SIDE = {"CHW2": (3, 2), "CHW4": (3, 4), "CHW16": (3, 16), "CHW32": (3, 32), "CDHW32": (4, 32)}
"""Formats: how many dims from the end the channels are, and what their number is rounded up to a multiple of."""

_DLA_ROW = 64
"""The bytes that rows of the format DLA_LINEAR are filled up to a multiple of."""

_DTYPES: dict[DataType | None, np.dtype] = {
    kind: tensor_type(wire_name(kind)).dtype
    for kind in DataType
    if kind not in (DataType.TYPE_INVALID, DataType.TYPE_STRING)
}


def dtype_of(tensor: EngineTensor) -> np.dtype:
    """The dtype of its arrays; BF16 is `uint16`. Raises UnsupportedError for types that no request can carry."""
    dtype = _DTYPES.get(tensor.datatype)
    if dtype is None:
        raise UnsupportedError(
            f"tensor '{tensor.name}' of the engine has the type {tensor.type}, which no request can carry; "
            "build the engine with FP32, FP16, BF16, INT8, INT32, INT64, UINT8 or BOOL at its borders"
        )
    return dtype


def memory_shape(tensor: EngineTensor, shape: Shape) -> Shape:
    """The shape of the C array that the tensor of that whole `shape` is in memory, padding included.

    Raises UnsupportedError for too few dims, and for formats of the DLA that fill rows up.
    """
    if tensor.is_linear:
        _check_rows(tensor, shape)
        return shape
    axis, components = _channels(tensor, shape)
    vectors = -(-shape[axis] // components)
    rest = shape[axis + 1 :]
    if tensor.format in _CHANNELS_LAST:
        return (*shape[:axis], *rest, vectors * components)
    return (*shape[:axis], vectors, *rest, components)


def memory_size(tensor: EngineTensor, shape: Shape) -> int:
    """The bytes of the tensor of that whole shape, padding included."""
    return prod(memory_shape(tensor, shape)) * dtype_of(tensor).itemsize


def pack(tensor: EngineTensor, array: np.ndarray) -> np.ndarray:
    """The C array of `memory_shape` with these elements, and zeros where it is padded; the array itself if linear."""
    if tensor.is_linear:
        return np.ascontiguousarray(array)
    axis, components = _channels(tensor, array.shape)
    target = memory_shape(tensor, array.shape)
    if tensor.format in _CHANNELS_LAST:
        packed = np.zeros(target, array.dtype)
        packed[..., : array.shape[axis]] = np.moveaxis(array, axis, -1)
        return packed
    widened = np.zeros((*array.shape[:axis], target[axis] * components, *array.shape[axis + 1 :]), array.dtype)
    widened[(slice(None),) * axis + (slice(array.shape[axis]),)] = array
    vectors = widened.reshape(*array.shape[:axis], target[axis], components, *array.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(vectors, axis + 1, -1))


def unpack(tensor: EngineTensor, memory: np.ndarray, shape: Shape) -> np.ndarray:
    """The elements of a C array of `memory_shape` as an array of that whole shape; a view where it can be one."""
    if tensor.is_linear:
        return memory.reshape(shape)
    axis, _ = _channels(tensor, shape)
    laid = memory.reshape(memory_shape(tensor, shape))
    if tensor.format in _CHANNELS_LAST:
        return np.moveaxis(laid[..., : shape[axis]], -1, axis)
    vectors = np.moveaxis(laid, -1, axis + 1)
    widened = vectors.reshape(*shape[:axis], -1, *shape[axis + 1 :])
    return widened[(slice(None),) * axis + (slice(shape[axis]),)]


def _check_rows(tensor: EngineTensor, shape: Shape) -> None:
    if tensor.format == "DLA_LINEAR" and shape and shape[-1] * dtype_of(tensor).itemsize % _DLA_ROW:
        raise UnsupportedError(
            f"tensor '{tensor.name}' of the engine has the format DLA_LINEAR and rows of {shape[-1]} elements, which "
            f"are not a multiple of {_DLA_ROW} bytes; build the engine with such rows, or with the format LINEAR"
        )


def _channels(tensor: EngineTensor, shape: Shape) -> tuple[int, int]:
    vector = _CHANNELS_LAST.get(tensor.format) or _SIDE_BY_SIDE.get(tensor.format)
    if vector is None or len(shape) < vector[0]:
        raise UnsupportedError(
            f"tensor '{tensor.name}' of the engine has the format {tensor.format} and {len(shape)} dims, which Naiad "
            f"cannot lay out; build the engine with LINEAR, {', '.join((*_SIDE_BY_SIDE, *_CHANNELS_LAST))}"
        )
    behind, components = vector
    return len(shape) - behind, components

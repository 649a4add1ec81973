"""Tensors that others hold in the memory of a GPU: where their elements lie, by the DLPack protocol.

Source of the structures: `dlpack.h` of DLPack 0.x, whose capsules are named "dltensor".
"""

import ctypes
from dataclasses import dataclass
from math import prod
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_tensorrt.description import Shape

CUDA = 2
"""The device type of CUDA memory."""

_CAPSULE = b"dltensor"


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


@dataclass(frozen=True, slots=True)
class Resident:
    """Elements that lie one after the other at `address`, for as long as this object is held.

    `code` and `bits` are DLPack's type: 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool.
    """

    address: int
    shape: Shape
    code: int
    bits: int
    capsule: Any

    @property
    def size(self) -> int:
        """The bytes of all elements."""
        return prod(self.shape) * self.bits // 8


def is_on_gpu(value: Any, device: int) -> bool:
    """Whether a value is a tensor in the memory of that GPU."""
    place = getattr(value, "__dlpack_device__", None)
    return place is not None and tuple(map(int, place())) == (CUDA, device)


def resident(value: Any, name: str, stream: int | None) -> Resident:
    """Where a tensor lies, ready for what is put on `stream` from now on.

    `name` is that of the input, for errors. Raises InvalidArgumentError when its elements are not one after the other.
    """
    capsule = value.__dlpack__(stream=stream)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, _CAPSULE))
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides and not _lies_in_order(shape, tuple(tensor.strides[: tensor.ndim])):
        raise InvalidArgumentError(
            f"input '{name}' lies on the GPU with strides {list(tensor.strides[: tensor.ndim])} for the shape "
            f"{list(shape)}; make it contiguous"
        )
    address = (tensor.data or 0) + tensor.byte_offset
    return Resident(address, shape, tensor.dtype.code, tensor.dtype.bits * tensor.dtype.lanes, capsule)


def _lies_in_order(shape: Shape, strides: Shape) -> bool:
    expected = 1
    for dim, stride in zip(reversed(shape), reversed(strides), strict=True):
        if dim != 1 and stride != expected:
            return False
        expected *= dim
    return True

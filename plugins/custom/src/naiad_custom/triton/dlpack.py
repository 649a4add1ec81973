"""Reading what a DLPack capsule holds, before anybody consumes it.

The structures are those of `dlpack.h` (dmlc.github.io/dlpack): a capsule named `dltensor` points to a DLManagedTensor,
which starts with a DLTensor; in one named `dltensor_versioned`, version, context, deleter and flags come before it.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from naiad_custom.triton.errors import TritonModelException

CPU_DEVICES = (1, 3, 11, 13)
"""Device types whose memory the host can read: CPU, and the host and managed memory of CUDA and ROCm."""

_BFLOAT = 4
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_VERSIONED_OFFSET = 32
"""Bytes before the DLTensor: two uint32 of the version, two pointers, and uint64 flags."""

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)


@dataclass(frozen=True, slots=True)
class CapsuleContent:
    """What a capsule holds: device (type, id), numpy dtype (uint16 where `is_bfloat16` says so) and shape."""

    device: tuple[int, int]
    dtype: np.dtype
    is_bfloat16: bool
    shape: tuple[int, ...]
    address: int


class Capsule:
    """A bare capsule as an object with `__dlpack__`, which libraries import from; it can be imported once."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def content_of(capsule: Any) -> CapsuleContent:
    """Look into an unused capsule. Raises TritonModelException when it is used up, strided or of no known dtype."""
    tensor = _tensor_of(capsule)
    shape = tuple(tensor.shape[index] for index in range(tensor.ndim))
    if tensor.strides and not _is_contiguous(shape, [tensor.strides[index] for index in range(tensor.ndim)]):
        raise TritonModelException(
            "the DLPack tensor is not contiguous; only contiguous tensors in C order are taken, so make it contiguous"
        )
    is_bfloat16 = (tensor.code, tensor.bits) == (_BFLOAT, 16)
    kind = "u" if is_bfloat16 else _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        told = f"type code {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes"
        raise TritonModelException(f"the DLPack tensor has {told}, which no datatype of the protocol carries")
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    address = (tensor.data or 0) + tensor.byte_offset
    return CapsuleContent((tensor.device_type, tensor.device_id), dtype, is_bfloat16, shape, address)


def copied(content: CapsuleContent) -> np.ndarray:
    """A copy of host memory that numpy has no dtype for; the capsule must be alive."""
    size = content.dtype.itemsize * int(np.prod(content.shape, dtype=np.int64))
    raw = ctypes.string_at(content.address, size) if size else b""
    return np.frombuffer(bytearray(raw), content.dtype).reshape(content.shape)


def as_bfloat16(bits: np.ndarray) -> Any:
    """A capsule over `uint16` bits that says they are bfloat16."""
    capsule = bits.__dlpack__()
    _tensor_of(capsule).code = _BFLOAT
    return capsule


def _tensor_of(capsule: Any) -> _DLTensor:
    for name, offset in ((b"dltensor", 0), (b"dltensor_versioned", _VERSIONED_OFFSET)):
        if _is_valid(capsule, name):
            return _DLTensor.from_address(_pointer(capsule, name) + offset)
    raise TritonModelException(f"{capsule!r} is no DLPack capsule, or it was used already; a capsule can be used once")


def _is_contiguous(shape: tuple[int, ...], strides: list[int]) -> bool:
    if 0 in shape:  # numpy gives such a tensor strides of 0
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True

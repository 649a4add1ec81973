"""DLPack capsules: their content, read without consuming them, and new capsules.

The structures are those of `dlpack.h` (dmlc.github.io/dlpack): a capsule named `dltensor` points to a DLManagedTensor,
which starts with a DLTensor; in one named `dltensor_versioned`, version, context, deleter and flags come before it.
"""

import ctypes
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from naiad_config.errors import InvalidArgumentError
from naiad_tensors.datatypes import TENSOR_TYPES

HOST_TYPES = frozenset((1, 3, 11, 13))
"""Device types whose memory the host can read: CPU, host memory of CUDA and of ROCm, managed memory of CUDA."""

_UNSIGNED, _BFLOAT = 1, 4
_KINDS = {0: "INT", 1: "UINT", 2: "FP", _BFLOAT: "BF", 6: "BOOL"}
_VERSIONED_OFFSET = 32
"""Bytes before the DLTensor: two uint32 of the version, two pointers, and uint64 flags."""


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


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _Deleter)
_NAME = b"dltensor"


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a capsule: device (type, number), wire datatype, shape, address and order."""

    device: tuple[int, int]
    datatype: str
    shape: tuple[int, ...]
    address: int
    is_contiguous: bool

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return prod(self.shape) * TENSOR_TYPES[self.datatype].itemsize

    def reshaped(self, shape: tuple[int, ...]) -> "Content":
        """The same elements, which lie in C order, in another shape."""
        return replace(self, shape=shape)

    def rows(self, rows: slice) -> "Content":
        """Some of the rows of what lies in C order."""
        start, stop, _ = rows.indices(self.shape[0])
        size = self.nbytes // self.shape[0] if self.shape[0] else 0
        return replace(self, shape=(max(0, stop - start), *self.shape[1:]), address=self.address + start * size)


def content_of(capsule: Any) -> Content:
    """The content of an unused capsule. Raises InvalidArgumentError for a used one, and for an unknown datatype."""
    tensor = _tensor_of(capsule)
    shape = tuple(tensor.shape[index] for index in range(tensor.ndim))
    strides = tuple(tensor.strides[index] for index in range(tensor.ndim)) if tensor.strides else None
    kind = _KINDS.get(tensor.code)
    datatype = "BOOL" if kind == "BOOL" and tensor.bits == 8 else f"{kind}{tensor.bits}"
    if datatype not in TENSOR_TYPES or tensor.lanes != 1:
        actual = f"type code {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes"
        raise InvalidArgumentError(f"the DLPack tensor has {actual}, which no datatype of the protocol carries")
    device = (tensor.device_type, tensor.device_id)
    address = (tensor.data or 0) + tensor.byte_offset
    return Content(device, datatype, shape, address, strides is None or _is_contiguous(shape, strides))


def capsule_over(content: Content, owner: object) -> Any:
    """A new capsule over the memory that the content describes; it keeps the `owner` alive."""
    code = next(code for code, kind in _KINDS.items() if content.datatype.rstrip("0123456789") == kind)
    held = _DLManagedTensor()
    shape = (ctypes.c_int64 * len(content.shape))(*content.shape)
    strides = type(shape)(*(prod(content.shape[axis + 1 :]) for axis in range(len(shape))))
    tensor = held.tensor
    tensor.data = content.address
    tensor.device_type, tensor.device_id = content.device
    tensor.ndim = len(content.shape)
    tensor.code, tensor.bits, tensor.lanes = code, 8 * TENSOR_TYPES[content.datatype].itemsize, 1
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    held.deleter = _release
    address = ctypes.addressof(held)
    _held[address] = (held, shape, strides, owner)
    return _new(address, _NAME, _drop)


_held: dict[int, tuple[object, ...]] = {}
"""The memory under the capsules of `capsule_over`, until their consumers release it."""


def _released(address: int) -> None:
    """The deleter of a capsule, which its consumer calls on any thread."""
    _held.pop(address, None)


def _dropped(capsule: int) -> None:
    """The destructor of a capsule, by its address: it was not consumed if it still has its name."""
    if _is_named(capsule, _NAME):
        _released(_pointer_in(capsule, _NAME))


_release, _drop = _Deleter(_released), _Deleter(_dropped)
_Raw = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_is_named = _Raw(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def placed(capsule: Any, device: tuple[int, int]) -> Any:
    """The unused capsule, marked as on that device."""
    tensor = _tensor_of(capsule)
    tensor.device_type, tensor.device_id = device
    return capsule


def as_bf16(capsule: Any) -> Any:
    """The unused capsule of unsigned integers, marked as BF16."""
    _tensor_of(capsule).code = _BFLOAT
    return capsule


def as_bits(capsule: Any) -> Any:
    """The unused capsule, with BF16 marked as unsigned integers, which numpy knows."""
    tensor = _tensor_of(capsule)
    if tensor.code == _BFLOAT:
        tensor.code = _UNSIGNED
    return capsule


class Capsule:
    """A bare capsule as an object with `__dlpack__`, which libraries import from; it can be imported once."""

    __slots__ = ("_capsule", "_device")

    def __init__(self, capsule: Any, device: tuple[int, int] = (1, 0)) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **_options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def _tensor_of(capsule: Any) -> _DLTensor:
    for name, offset in ((b"dltensor", 0), (b"dltensor_versioned", _VERSIONED_OFFSET)):
        if _is_valid(capsule, name):
            return _DLTensor.from_address(_pointer(capsule, name) + offset)
    raise InvalidArgumentError(f"{capsule!r} is not a DLPack capsule, or was used already; a capsule can be used once")


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if 0 in shape:  # numpy gives such a tensor strides of 0
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True

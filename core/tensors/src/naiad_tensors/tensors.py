"""The tensors of requests and responses, in host memory, on a device or deferred."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from naiad_tensors.datatypes import fp32_to_bf16, tensor_type, wire_name_of
from naiad_tensors.devices import HOST, DeviceTensor, is_on_device

_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs


class SupportsDLPack(Protocol):
    """A value with the DLPack protocol of the Python array API standard."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


class DeferredPayload(ABC):
    """The payload of a tensor in shared memory or the like, which the worker reads before it executes the request."""

    __slots__ = ()

    @abstractmethod
    def fetch(self) -> np.ndarray:
        """The tensor in host memory, copied once. Raises InvalidArgumentError if its bytes are gone."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Its bytes of host memory, -1 for a tensor on a device."""

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.fetch().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


@dataclass(slots=True, eq=False)
class Tensor:
    """A named tensor: wire `datatype` (`FP32`, `BYTES`, …), `shape` with the batch dimension where the model has one.

    `payload` is a numpy array of that shape (BYTES: object array of `bytes`; BF16: `uint16` bits), often a read-only
    view on a received buffer, or any object with `__dlpack__`, in the kernel a DeviceTensor for memory of a device.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    payload: np.ndarray | SupportsDLPack

    @classmethod
    def of(cls, name: str, value: Any, datatype: str = "") -> "Tensor":
        """A tensor over an array, anything with `__dlpack__`, or nested lists; the datatype follows from the dtype.

        A value on a device stays there, unless `datatype` differs from its own. Raises InvalidArgumentError for a dtype
        without a datatype of the protocol.
        """
        if type(value) is not np.ndarray and is_on_device(value):
            resident = DeviceTensor.of(value)
            if datatype in ("", resident.datatype):
                return cls(name, resident.datatype, resident.shape, resident)
        array = host_array(value)
        wire = datatype or wire_name_of(array.dtype)
        if wire == "BYTES":
            array = bytes_array(array)
        elif wire == "BF16" and array.dtype.kind == "f":
            array = fp32_to_bf16(array)
        elif array.dtype != tensor_type(wire).dtype:
            array = array.view(np.uint16) if array.dtype.name == "bfloat16" else array.astype(tensor_type(wire).dtype)
        return cls(name, wire, tuple(array.shape), array)

    @property
    def array(self) -> np.ndarray:
        """The tensor as a numpy array in host memory, itself if it is there.

        A DeviceTensor is copied once, any other payload on a device each time; a DeferredPayload is fetched.
        """
        if isinstance(self.payload, _ndarray):
            return self.payload
        if isinstance(self.payload, DeferredPayload):  # of strings, too, which DLPack does not have
            return self.payload.fetch().reshape(self.shape)
        return _over_dlpack(self.payload).reshape(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes its elements have, those of strings counted one by one."""
        payload = self.payload
        if type(payload) is not _ndarray:
            if isinstance(payload, DeviceTensor):
                return payload.nbytes
            payload = self.array
        return sum(map(len, payload.flat)) if self.datatype == "BYTES" else payload.nbytes

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.payload.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.payload.__dlpack_device__()


def host_array(value: Any) -> np.ndarray:
    """A numpy array over an array (itself), anything with `__dlpack__` (a copy from a device), or nested lists.

    Lists of text become object arrays: numpy's text arrays lose NUL bytes at the end of an element.
    """
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        return _over_dlpack(value)
    array = np.asarray(value)
    return np.asarray(value, dtype=object) if array.dtype.kind in "SU" else array


def _over_dlpack(value: Any) -> np.ndarray:
    return DeviceTensor.of(value).array if is_on_device(value) else np.from_dlpack(value)


def bytes_array(value: np.ndarray) -> np.ndarray:
    """An object array of `bytes`, same shape, from `S`, `U` or object arrays (itself for `bytes`); `str` as UTF-8."""
    flat = value.ravel().tolist()
    if value.dtype.hasobject and set(map(type, flat)) <= {bytes}:
        return value
    flat = [element if type(element) is bytes else _to_bytes(element) for element in flat]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(value.shape)


def _to_bytes(element: object) -> bytes:
    if isinstance(element, bytes | bytearray | memoryview):
        return bytes(element)
    return str(element).encode()

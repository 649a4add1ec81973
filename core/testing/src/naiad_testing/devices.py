"""Fake device memory for machines without a GPU: host memory that DLPack describes as on a device.

It keeps to DLPack as frameworks do: numpy refuses it, and it comes to the host only by being asked to.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from naiad_tensors import device_copies
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.devices import HOST, Device, gpu
from naiad_tensors.dlpack import as_bf16, content_of, placed

_FIRST = gpu(0)


class FakeDeviceArray:
    """An array on a device that there is not; `is_bf16` says that its `uint16` are bits of BF16.

    `copies` counts how often it was copied to the host. With `copies_itself` unset
    it does not know `dl_device`, as frameworks did not before 2023.
    """

    def __init__(
        self, array: Any, device: Device = _FIRST, *, is_bf16: bool = False, copies_itself: bool = True
    ) -> None:
        self.memory = np.asarray(array)
        self.device = device
        self._is_bf16 = is_bf16
        self._copies_itself = copies_itself
        self.copies = 0

    @classmethod
    def over(cls, tensor: Any) -> "FakeDeviceArray":
        """An array over the memory of another one, by DLPack alone, as the framework of a consumer takes it in."""
        content = content_of(tensor.__dlpack__(stream=1))
        dtype = TENSOR_TYPES[content.datatype].dtype
        raw: Any = (ctypes.c_ubyte * content.nbytes).from_address(content.address)
        raw.owner = tensor
        array = np.frombuffer(raw, dtype).reshape(content.shape)
        return cls(array, content.device, is_bf16=content.datatype == "BF16")

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if options and not self._copies_itself:
            raise TypeError(f"__dlpack__() takes no {', '.join(options)}")
        if options.get("dl_device") == HOST:
            self.copies += 1
            return self._capsule_of(self.memory.copy().__dlpack__())
        return placed(self._capsule_of(self.memory.__dlpack__()), self.device)

    def __dlpack_device__(self) -> Device:
        return self.device

    def _capsule_of(self, capsule: Any) -> Any:
        return as_bf16(capsule) if self._is_bf16 else capsule


@contextmanager
def fake_driver() -> Iterator[None]:
    """Copies by the driver of CUDA are copies in host memory for as long as the block runs."""
    real = device_copies.driver
    device_copies.driver = _HostDriver  # type: ignore[assignment]
    try:
        yield
    finally:
        device_copies.driver = real


class _HostDriver:
    """As much of the driver as `naiad_tensors.devices` uses."""

    def to_host(self, address: int, _device: int, array: np.ndarray) -> None:
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def within(self, source: int, target: int, _device: int, byte_size: int) -> None:
        ctypes.memmove(target, source, byte_size)

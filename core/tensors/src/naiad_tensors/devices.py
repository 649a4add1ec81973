"""Tensors on a device, by DLPack: views without a copy, and at most one copy in host memory for each.

A tensor that is passed to the kernel is complete: its computation has ended, so that it can be read on any stream
(docs/backends.md has the reason).
"""

import functools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from naiad_config.errors import InvalidArgumentError
from naiad_tensors.device_copies import copied_by_driver, copied_on_device, host_copy
from naiad_tensors.dlpack import HOST_TYPES, Content, capsule_over, content_of

Device = tuple[int, int]
"""The type and number of a device, as `__dlpack_device__` gives them."""

OnDevice = Mapping[str, Collection[Device]]
"""Names of outputs with the devices where each may stay; with HOST among them it is copied to host memory, too."""

HOST: Device = (1, 0)
"""Host memory."""


class EveryOutput(Mapping[str, Collection[Device]]):
    """A value of `Request.on_device` that lets every output stay on these devices."""

    def __init__(self, devices: Collection[Device]) -> None:
        self._devices = devices

    def __getitem__(self, name: str) -> Collection[Device]:
        return self._devices

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_STREAMED = (2, 10)  # CUDA and ROCm, whose tensors are asked for with a stream; -1 asks for no synchronisation


def gpu(number: int) -> Device:
    """The CUDA device of that number."""
    return (2, number)


def device_of(value: Any) -> Device:
    """The device that a value with `__dlpack__` lies on, as plain integers."""
    kind, number = value.__dlpack_device__()
    return int(kind), int(number)


def is_on_device(value: Any) -> bool:
    """Whether a value, with DLPack or without, is on a device whose memory the host cannot read."""
    ask = getattr(value, "__dlpack_device__", None)
    return ask is not None and ask()[0] not in HOST_TYPES


class DeviceTensor:
    """A tensor on a device, not copied: `device`, wire `datatype`, `shape`, and the `address` of the first element.

    It supports DLPack, keeps the memory alive, and is safe to use from any thread.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_bring",
        "_content",
        "_lock",
        "_owner",
        "address",
        "datatype",
        "device",
        "shape",
    )

    def __init__(self, owner: Any, content: Content, bring: Callable[[], np.ndarray] | None = None) -> None:
        """For `of`, `at`, `reshape` and slices: `owner` keeps, exports and copies the memory, unless `bring` does."""
        self.device = content.device
        self.datatype = content.datatype
        self.shape = content.shape
        self.address = content.address
        self._owner = owner
        self._content = content
        self._bring = bring
        self._array: np.ndarray | None = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, value: Any) -> "DeviceTensor":
        """The tensor of a value with `__dlpack__`; a DeviceTensor itself.

        Raises InvalidArgumentError for an unknown datatype, and for a value that cannot be exported.
        """
        return value if isinstance(value, cls) else cls(value, _looked_into(value))

    @classmethod
    def at(cls, address: int, device: Device, datatype: str, shape: tuple[int, ...], owner: object) -> "DeviceTensor":
        """The tensor in C order at that address of a device, whose memory lives as long as `owner`."""
        content = Content(device, datatype, shape, address, is_contiguous=True)
        return cls(owner, content, functools.partial(copied_by_driver, content))

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._content.nbytes

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements are in C order without gaps; only such a tensor may stay on the device."""
        return self._content.is_contiguous

    @property
    def is_on_host_too(self) -> bool:
        """Whether it was copied to the host already."""
        return self._array is not None

    @property
    def array(self) -> np.ndarray:
        """Its copy in host memory (BF16 as `uint16` bits), made at the first use. Raises UnavailableError."""
        with self._lock:
            if self._array is None:
                self._array = host_copy(self._owner, self._content) if self._bring is None else self._bring()
            return self._array

    def reshape(self, shape: tuple[int, ...]) -> "DeviceTensor | np.ndarray":
        """A view in that shape; on the host if the elements have gaps."""
        if shape == self.shape:
            return self
        if not self.is_contiguous:
            return self.array.reshape(shape)
        return DeviceTensor(self, self._content.reshaped(shape), lambda: self.array.reshape(shape))

    def __getitem__(self, rows: slice) -> "DeviceTensor | np.ndarray":
        """A view of these rows of the first dimension; on the host if the elements have gaps.

        The host copy of a view is a view of the whole tensor's.
        """
        if not self.is_contiguous:
            return self.array[rows]
        return DeviceTensor(self, self._content.rows(rows), lambda: self.array[rows])

    def copy_to(self, address: int) -> None:
        """Copy a tensor without gaps to an address on its GPU, by the CUDA driver. Raises UnavailableError."""
        copied_on_device(self._content, address)

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if self._bring is not None and options.get("dl_device", self.device) == self.device:
            return capsule_over(self._content, self)
        if self._bring is not None:
            return self.array.__dlpack__()
        return self._owner.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> Device:
        return self.device


def _looked_into(value: Any) -> Content:
    options = {"stream": -1} if device_of(value)[0] in _STREAMED else {}
    try:
        return content_of(value.__dlpack__(**options))
    except (BufferError, TypeError, RuntimeError) as error:
        raise InvalidArgumentError(
            f"the tensor on device {device_of(value)} cannot be handed on by DLPack ({error}); make it contiguous and "
            "without a gradient, and make the naiad_tensors.tensors.Tensor where its device is the current one"
        ) from error

"""Tensors that lie on a device: what DLPack tells of them, and their way to the host, which each takes once at most.

A device is what `__dlpack_device__` says: a type and a number. Whoever hands a tensor on by way of the kernel has
finished it: what computes it has ended, so that it can be read on any stream (docs/backends.md says why).
"""

import functools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from naiad.device_copies import copied_by_driver, copied_on_device, host_copy
from naiad.dlpack import HOST_TYPES, Content, capsule_over, content_of
from naiad.errors import InvalidArgumentError

Device = tuple[int, int]
"""The type and number of a device, as `__dlpack_device__` gives them."""

OnDevice = Mapping[str, Collection[Device]]
"""Names of outputs, and the devices where each may stay; with HOST among them it is wanted in host memory, too."""

HOST: Device = (1, 0)
"""Host memory."""


class EveryOutput(Mapping[str, Collection[Device]]):
    """Says for `Request.on_device` that every output may stay on these devices, without their names."""

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
    """Whether a value lies on a device whose memory the host cannot read; it need not know DLPack at all."""
    ask = getattr(value, "__dlpack_device__", None)
    return ask is not None and ask()[0] not in HOST_TYPES


class DeviceTensor:
    """A tensor on a device: its `device`, wire `datatype` and `shape`, without a copy of it.

    It offers itself by DLPack, keeps the memory for as long as it is there, and is safe to use from any thread.
    `address` is where its first element is.
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
        """For `of`, `at`, `reshape` and slices: `owner` keeps the memory.

        It offers it by DLPack as well, and copies it to the host, unless `bring` does.
        """
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
        """The tensor that a value with `__dlpack__` holds, or itself.

        Raises InvalidArgumentError when no datatype of the protocol carries it, or it cannot be looked into.
        """
        return value if isinstance(value, cls) else cls(value, _looked_into(value))

    @classmethod
    def at(cls, address: int, device: Device, datatype: str, shape: tuple[int, ...], owner: object) -> "DeviceTensor":
        """The tensor in C order at that address of a device, whose memory is there for as long as `owner` is."""
        content = Content(device, datatype, shape, address, is_contiguous=True)
        return cls(owner, content, functools.partial(copied_by_driver, content))

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._content.nbytes

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie in C order without gaps; only such a tensor may stay where it is."""
        return self._content.is_contiguous

    @property
    def is_on_host_too(self) -> bool:
        """Whether it was brought to the host already."""
        return self._array is not None

    @property
    def array(self) -> np.ndarray:
        """The same in host memory (BF16 as `uint16` bits), copied when it is first asked for.

        Raises UnavailableError when it cannot be copied.
        """
        with self._lock:
            if self._array is None:
                self._array = host_copy(self._owner, self._content) if self._bring is None else self._bring()
            return self._array

    def reshape(self, shape: tuple[int, ...]) -> "DeviceTensor | np.ndarray":
        """The same elements in that shape, over the same memory; on the host if there are gaps between them."""
        if shape == self.shape:
            return self
        if not self.is_contiguous:
            return self.array.reshape(shape)
        return DeviceTensor(self, self._content.reshaped(shape), lambda: self.array.reshape(shape))

    def __getitem__(self, rows: slice) -> "DeviceTensor | np.ndarray":
        """These rows of the first dimension, over the same memory; on the host if there are gaps between elements.

        They come to the host with all others: what is left of a batch usually goes the same way.
        """
        if not self.is_contiguous:
            return self.array[rows]
        return DeviceTensor(self, self._content.rows(rows), lambda: self.array[rows])

    def copy_to(self, address: int) -> None:
        """Copy it, which has no gaps, to an address on its own GPU, with CUDA's driver; returns when that is done.

        For backends whose framework does not join tensors. Raises UnavailableError.
        """
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
            "without a gradient, and make the naiad.types.Tensor where its device is the current one"
        ) from error

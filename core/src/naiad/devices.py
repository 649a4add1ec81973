"""Tensors that lie on a device: what DLPack tells of them, and their way to the host, which each takes once at most.

A device is what `__dlpack_device__` says: a type and a number. Whoever hands a tensor on by way of the kernel has
finished it: what computes it has ended, so that it can be read on any stream (docs/backends.md says why).
"""

import threading
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from naiad._kernel.dlpack import HOST_TYPES, Content, content_of, host_copy
from naiad.errors import InvalidArgumentError

Device = tuple[int, int]
"""The type and number of a device, as `__dlpack_device__` gives them."""

OnDevice = Mapping[str, Collection[Device]]
"""Names of outputs, and the devices where each may stay; with HOST among them it is wanted in host memory, too."""

HOST: Device = (1, 0)
"""Host memory."""

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
    """

    __slots__ = ("__weakref__", "_array", "_content", "_lock", "_owner", "_source", "datatype", "device", "shape")

    def __init__(self, owner: Any, content: Content, source: "DeviceTensor | None" = None) -> None:
        """For `of`, `reshape` and slices: `source` is what has the same elements in another shape."""
        self.device = content.device
        self.datatype = content.datatype
        self.shape = content.shape
        self._owner = owner
        self._content = content
        self._source = source
        self._array: np.ndarray | None = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, value: Any) -> "DeviceTensor":
        """The tensor that a value with `__dlpack__` holds, or itself.

        Raises InvalidArgumentError when no datatype of the protocol carries it, or it cannot be looked into.
        """
        return value if isinstance(value, cls) else cls(value, _looked_into(value))

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
                if self._source is not None:
                    self._array = self._source.array.reshape(self.shape)
                else:
                    self._array = host_copy(self._owner, self._content)
            return self._array

    def reshape(self, shape: tuple[int, ...]) -> "DeviceTensor | np.ndarray":
        """The same elements in that shape, on the device if what owns it can reshape, else on the host."""
        if shape == self.shape:
            return self
        if self.is_contiguous and hasattr(self._owner, "reshape"):
            return DeviceTensor(self._owner.reshape(shape), self._content.reshaped(shape), source=self)
        return self.array.reshape(shape)

    def __getitem__(self, rows: slice) -> "DeviceTensor | np.ndarray":
        """These rows of the first dimension, on the device if what owns it can be sliced, else on the host."""
        if not (self.is_contiguous and hasattr(self._owner, "__getitem__")):
            return self.array[rows]
        part = DeviceTensor(self._owner[rows], self._content.rows(rows))
        if self._array is not None:
            part._array = self._array[rows]
        return part

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
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

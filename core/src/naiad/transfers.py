"""Large tensors that are copied in from and out to shared memory by the thread that executes their request.

The copy of 600 KB takes about 70 µs, which the event loop would have to spend for each request and each response; the
workers have processors of their own. Memory of a GPU that the model computes on is read in place, and written there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from naiad._kernel.shared_memory.devices import DeviceMemory
from naiad.datatypes import tensor_type
from naiad.devices import Device, DeviceTensor, OnDevice
from naiad.errors import NaiadError
from naiad.protocol.buffers import Buffer, bool_array, unpack_strings
from naiad.shared_memory import Region
from naiad.types import Tensor

LARGE = 64 << 10
"""From so many bytes on a copy is left to the worker."""

_CPU = (1, 0)


class SharedContent:
    """The payload of a tensor whose bytes lie in a region; they are copied when they are first asked for.

    `shape` and `dtype` are those of the tensor, whose bytes begin at `offset`. Raises InvalidArgumentError at once when
    they do not lie within the region.
    """

    __slots__ = ("_array", "_dtype", "_offset", "_region", "_shape", "_size")

    def __init__(self, region: Region, offset: int, byte_size: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        region.check(offset, byte_size)
        self._region = region
        self._offset = offset
        self._size = byte_size
        self._shape = shape
        self._dtype = dtype
        self._array: np.ndarray | None = None

    def fetch(self) -> np.ndarray:
        """The tensor, copied once. Raises InvalidArgumentError when the client has taken the memory away."""
        if self._array is None:
            content = self._region.read(self._offset, self._size)
            self._array = np.ndarray(self._shape, self._dtype, content.data)
        return self._array

    @property
    def nbytes(self) -> int:
        """How many bytes of memory of the host it takes, -1 for what lies on a GPU."""
        return -1 if isinstance(self._region, DeviceMemory) else self._size

    def on_device(self, datatype: str, devices: Collection[Device]) -> DeviceTensor | None:
        """The tensor where it lies, if that is one of these devices."""
        region = self._region
        if isinstance(region, DeviceMemory) and region.device in devices:
            return region.tensor(self._offset, datatype, self._shape)
        return None

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.fetch().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU


class SharedInput(NamedTuple):
    """An input whose `byte_size` bytes come from `offset` on in the shared memory region that is then called `region`.

    They are as many as its `elements` take, whose datatype on the wire is `datatype` and in numpy `dtype`; those of
    BYTES say themselves how many they are.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    elements: int
    region: str
    offset: int
    byte_size: int

    def tensor(self, region: Region, model: str) -> Tensor:
        """The tensor with what the region holds now: a copy of its bytes, or the promise of a large one.

        Raises InvalidArgumentError, that names `model`, when they do not lie within the region or are no such tensor.
        """
        return Tensor(self.name, self.datatype, self.shape, self._payload(region, model))

    def _payload(self, region: Region, model: str) -> np.ndarray | SharedContent:
        is_plain = self.datatype not in ("BYTES", "BOOL")
        if is_plain and self.byte_size >= LARGE:
            return SharedContent(region, self.offset, self.byte_size, self.shape, self.dtype)
        content = region.read(self.offset, self.byte_size).data
        if is_plain:
            return np.ndarray(self.shape, self.dtype, content)
        if self.datatype == "BOOL":
            return bool_array(self.shape, content)
        return unpack_strings(content, self.elements, self.name, model).reshape(self.shape)


@dataclass(slots=True)
class Place:
    """Where an output goes: the `byte_size` bytes from `offset` on of a region.

    Raises InvalidArgumentError at once when they do not lie within it.
    """

    region: Region
    offset: int
    byte_size: int
    _stored: Tensor | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.region.check(self.offset, self.byte_size)

    def holds(self, tensor: Tensor) -> bool:
        """Whether this very tensor was stored there."""
        return self._stored is tensor

    def take(self, tensor: Tensor) -> bool:
        """Whether the tensor lies on the GPU of the region, where it has been copied then. Raises NaiadError."""
        payload, region = tensor.payload, self.region
        if not (isinstance(payload, DeviceTensor) and isinstance(region, DeviceMemory)):
            return False
        if payload.device != region.device:
            return False
        region.take(self.offset, self.byte_size, payload, tensor.name)
        self._stored = tensor
        return True

    def store(self, tensor: Tensor, content: Buffer) -> None:
        """Write the bytes of that tensor. Raises InvalidArgumentError when they do not fit, or the memory is gone."""
        self.region.write(self.offset, self.byte_size, (content,), tensor.name)
        self._stored = tensor


class Transfer:
    """What the worker copies for one request: the tensors over `SharedContent` before it, and outputs after it.

    What it does not copy out (strings, outputs whose bytes are not in order), whoever encodes the response does.
    """

    __slots__ = ("_places", "_tensors")

    def __init__(self, tensors: Sequence[Tensor], places: Mapping[str, Place]) -> None:
        self._tensors = tensors
        self._places = places

    @property
    def on_device(self) -> OnDevice | None:
        """Where outputs may stay until they are copied, None where all come to the host."""
        regions = {name: place.region for name, place in self._places.items()}
        found = {name: (region.device,) for name, region in regions.items() if isinstance(region, DeviceMemory)}
        return found or None

    def fetch(self, devices: Collection[Device] = ()) -> None:
        """Copy the inputs, but for those that lie on one of these devices.

        Raises InvalidArgumentError; zeros stand for those that could not be had then.
        """
        for tensor in self._tensors:
            content = tensor.payload
            if isinstance(content, SharedContent):
                try:
                    resident = content.on_device(tensor.datatype, devices) if devices else None
                    tensor.payload = content.fetch() if resident is None else resident
                except NaiadError:
                    self._blank()
                    raise

    def _blank(self) -> None:
        """In place of all of them, also of those that were copied: nobody needs them any more."""
        for tensor in self._tensors:
            tensor.payload = _zeros(tensor)

    def store(self, outputs: Mapping[str, Tensor]) -> None:
        """Copy the outputs. Raises InvalidArgumentError."""
        for name, place in self._places.items():
            tensor = outputs.get(name)
            if tensor is not None and tensor.datatype != "BYTES" and not place.take(tensor):
                array = tensor.array
                if array.flags.c_contiguous and array.nbytes:
                    place.store(tensor, array.data.cast("B"))


def _zeros(tensor: Tensor) -> np.ndarray:
    """Zeros in place of what cannot be had, all of them the same one where there is no memory for so many."""
    dtype = tensor_type(tensor.datatype).dtype
    try:
        return np.zeros(tensor.shape, dtype)
    except MemoryError:
        return np.broadcast_to(np.zeros((), dtype), tensor.shape)


def transfer_of(inputs: Mapping[str, Tensor], places: Mapping[str, Place | None]) -> Transfer | None:
    """What is left to the worker of a request with these inputs, None when it is not worth it.

    `places` are those of the outputs by their names, None for one that goes into the response.
    """
    lazy = [tensor for tensor in inputs.values() if isinstance(tensor.payload, SharedContent)]
    large = {name: place for name, place in places.items() if place is not None and place.byte_size >= LARGE}
    return Transfer(lazy, large) if lazy or large else None

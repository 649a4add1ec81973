"""Large tensors in shared memory, which the thread that executes their request has to do with.

Models read the client's own memory where they can (`Region.lend`), and it is copied where not; outputs are copied to
it. A copy of 600 KB takes some 60 µs, which the event loop would have to spend for each request. Memory of a GPU that
the model computes on is read in place, and written there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from naiad._kernel.shared_memory.devices import DeviceMemory
from naiad._kernel.shared_memory.mapping import Loan
from naiad._kernel.shared_memory.segments import LARGE
from naiad.buffers import Buffer, bool_array, unpack_strings
from naiad.datatypes import tensor_type
from naiad.devices import Device, DeviceTensor, OnDevice
from naiad.errors import NaiadError
from naiad.shared_memory import Region
from naiad.types import DeferredPayload, Tensor

_NOTHING = np.empty(0, np.uint8)
"""The payload of what nobody asks for any more."""


class SharedContent(DeferredPayload):
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

    def lend(self) -> tuple[np.ndarray, Loan] | None:
        """The tensor where it lies, None where it has to be copied, or has been. Raises InvalidArgumentError."""
        if self._array is not None:
            return None
        loan = self._region.lend(self._offset, self._size)
        return None if loan is None else (np.ndarray(self._shape, self._dtype, loan.array), loan)

    def shrunk(self) -> NaiadError:
        """What to say when lent memory was taken away."""
        return self._region.shrunk()

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
    """What the worker does for one request: it gets the tensors over `SharedContent` before it, and stores outputs.

    What it does not copy out (strings, outputs whose bytes are not in order), whoever encodes the response does.
    `may_lend` allows that inputs are lent to the model; where others than the model may ask for them, or for an output
    that was stored, it is to be taken back.
    """

    __slots__ = ("_loans", "_places", "_tensors", "may_lend")

    def __init__(self, tensors: Sequence[Tensor], places: Mapping[str, Place]) -> None:
        self._tensors = tensors
        self._places = places
        self._loans: list[tuple[Tensor, SharedContent, Loan]] = []
        self.may_lend = True

    @property
    def on_device(self) -> OnDevice | None:
        """Where outputs may stay until they are copied, None where all come to the host."""
        regions = {name: place.region for name, place in self._places.items()}
        found = {name: (region.device,) for name, region in regions.items() if isinstance(region, DeviceMemory)}
        return found or None

    def fetch(self, devices: Collection[Device] = (), lend: bool = False) -> None:
        """Get the inputs: lent where that is allowed, where they are if on one of these devices, or as copies.

        Raises InvalidArgumentError; zeros stand for those that could not be had then.
        """
        for tensor in self._tensors:
            content = tensor.payload
            if isinstance(content, SharedContent):
                try:
                    tensor.payload = self._had(tensor, content, devices, lend)
                except BaseException:  # a MemoryError, too: a loan that does not end is never lent again
                    self._blank()
                    loans, self._loans = self._loans, []
                    for _, _, loan in loans:
                        loan.end()
                    raise

    def _had(
        self, tensor: Tensor, content: SharedContent, devices: Collection[Device], lend: bool
    ) -> np.ndarray | DeviceTensor:
        resident = content.on_device(tensor.datatype, devices) if devices else None
        if resident is not None:
            return resident
        lent = content.lend() if lend and self.may_lend else None
        if lent is None:
            return content.fetch()
        array, loan = lent
        self._loans.append((tensor, content, loan))
        return array

    def _blank(self) -> None:
        """In place of all of them, also of those that were copied: nobody needs them any more."""
        for tensor in self._tensors:
            tensor.payload = _zeros(tensor)

    def store(self, outputs: Mapping[str, Tensor]) -> None:
        """Copy the outputs, and let go of them when inputs are lent: they may be the same arrays. Raises NaiadError."""
        for name, place in self._places.items():
            tensor = outputs.get(name)
            if tensor is not None and tensor.datatype != "BYTES" and not place.take(tensor):
                array = tensor.array
                if array.flags.c_contiguous and array.nbytes:
                    place.store(tensor, array.data.cast("B"))
                    if self._loans:
                        tensor.payload = _NOTHING

    def give_back(self) -> bool:
        """Take back what was lent, when nothing but the model refers to it; whether the model only read it.

        Raises InvalidArgumentError when the client has taken it away meanwhile.
        """
        if not self._loans:
            return True
        loans, self._loans = self._loans, []
        plain = True
        for tensor, content, loan in loans:
            tensor.payload = content
            plain = loan.end() and plain
        if not plain:
            for _, content, loan in loans:
                if loan.is_torn:
                    raise content.shrunk()
        return plain

    def for_inputs(self, inputs: Mapping[str, Tensor]) -> "Transfer | None":
        """The transfer of a request made on behalf of this one with these inputs; it lends nothing."""
        transfer = transfer_of(inputs, {})
        if transfer is not None:
            transfer.may_lend = False
        return transfer


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

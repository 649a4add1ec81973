"""Shared-memory tensors of one request: inputs are fetched and outputs written on the worker's thread.

Models read the client's own memory where they can (`Region.lend`), and it is copied where not; outputs are copied to
it. A copy of 600 KB takes some 60 µs, which the event loop would have to spend for each request. Memory of a GPU that
the model computes on is read in place, and written there.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from naiad.errors import InvalidArgumentError, NaiadError
from naiad_kit.buffers import Buffer, bool_array, pack_strings, unpack_strings
from naiad_kit.shared_memory import OutputTarget, SharedInput
from naiad_shared_memory.device_memory import DeviceMemory
from naiad_shared_memory.mapping import Loan
from naiad_shared_memory.region import Region
from naiad_shared_memory.segments import LARGE
from naiad_tensors.datatypes import tensor_type
from naiad_tensors.devices import Device, DeviceTensor, OnDevice
from naiad_tensors.tensors import DeferredPayload, Tensor

_NOTHING = np.empty(0, np.uint8)
"""The payload of an output that is needed no more."""


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
            self._array = self._array_of(self._region.read(self._offset, self._size).data)
        return self._array

    def lend(self) -> tuple[np.ndarray, Loan] | None:
        """The tensor where it lies, None where it has to be copied, or has been. Raises InvalidArgumentError."""
        if self._array is not None:
            return None
        loan = self._region.lend(self._offset, self._size)
        return None if loan is None else (np.ndarray(self._shape, self._dtype, loan.array), loan)

    def _array_of(self, content: memoryview) -> np.ndarray:
        """The tensor of its bytes."""
        return np.ndarray(self._shape, self._dtype, content)

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


class SharedElements(SharedContent):
    """As SharedContent, for strings and booleans: their bytes are looked at one by one, so they are always copied.

    Raises InvalidArgumentError at once also for more strings than the bytes can hold. `fetch` also raises it, naming
    `model`, for bytes that are not such a tensor.
    """

    __slots__ = ("_described", "_model")

    def __init__(self, region: Region, described: SharedInput, model: str) -> None:
        super().__init__(region, described.offset, described.byte_size, described.shape, described.dtype)
        _check_count(described, model)
        self._described = described
        self._model = model

    def lend(self) -> None:
        """Nothing: a model needs arrays of their elements."""

    def on_device(self, datatype: str, devices: Collection[Device]) -> None:
        """Nothing, as above."""

    def _array_of(self, content: memoryview) -> np.ndarray:
        return _elements(content, self._described, self._model)


def tensor_over(region: Region, described: SharedInput, model: str) -> Tensor:
    """The tensor with what the region holds now: a copy of its bytes, or a `SharedContent` where that takes long.

    Raises InvalidArgumentError when the bytes do not lie within the region, and, naming `model`, when they are no such
    tensor; of a `SharedContent` `fetch` may raise that.
    """
    return Tensor(described.name, described.datatype, described.shape, _payload(region, described, model))


def _payload(region: Region, described: SharedInput, model: str) -> np.ndarray | SharedContent:
    is_plain = described.datatype not in ("BYTES", "BOOL")
    if _takes_long(region, described.byte_size):
        if not is_plain:
            return SharedElements(region, described, model)
        return SharedContent(region, described.offset, described.byte_size, described.shape, described.dtype)
    content = region.read(described.offset, described.byte_size).data
    return np.ndarray(described.shape, described.dtype, content) if is_plain else _elements(content, described, model)


def _check_count(described: SharedInput, model: str) -> None:
    """Raise InvalidArgumentError where the bytes cannot hold so many strings: what stands for them has its shape."""
    most = described.byte_size // 4  # each string has its length in front
    if described.datatype == "BYTES" and described.elements > most:
        raise InvalidArgumentError(
            f"expected {described.elements} string elements for inference input '{described.name}' for model "
            f"'{model}', got at most {most}"
        )


def _takes_long(region: Region, byte_size: int) -> bool:
    """Whether to copy so many bytes on the worker: a copy from or to a GPU waits for what computes there."""
    return byte_size >= LARGE or isinstance(region, DeviceMemory)


def _elements(content: memoryview, described: SharedInput, model: str) -> np.ndarray:
    if described.datatype == "BOOL":
        return bool_array(described.shape, content)
    return unpack_strings(content, described.elements, described.name, model).reshape(described.shape)


@dataclass(slots=True)
class SharedOutput:
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
        self.region.write(self.offset, self.byte_size, content, tensor.name)
        self._stored = tensor


class SharedMemoryIO:
    """The `RequestIO` of one request: reads its inputs over `SharedContent`, if it `reads` any, and stores outputs.

    The frontend stores what this does not: outputs that have few bytes, or none.
    """

    __slots__ = ("_loans", "_outputs", "_reads", "may_lend")

    def __init__(self, reads: bool, outputs: Mapping[str, SharedOutput]) -> None:
        self._reads = reads
        self._outputs = outputs
        self._loans: list[tuple[Tensor, SharedContent, Loan]] = []
        self.may_lend = True

    @property
    def on_device(self) -> OnDevice | None:
        """Where outputs may stay until they are copied, None where all come to the host."""
        regions = {name: output.region for name, output in self._outputs.items()}
        devices = {name: (region.device,) for name, region in regions.items() if isinstance(region, DeviceMemory)}
        return devices or None

    def fetch(self, inputs: Mapping[str, Tensor], devices: Collection[Device] = (), lend: bool = False) -> None:
        """Get the inputs: lent where that is allowed, where they are if on one of these devices, or as copies.

        They may have other shapes than in the client's request: by a `reshape`, or for a step of an ensemble. Raises
        InvalidArgumentError; zeros stand for all of them then, for the model must not see some of them.
        """
        tensors = _deferred(inputs) if self._reads else []
        try:
            for tensor, content in tensors:
                tensor.payload = self._input(tensor, content, devices, lend).reshape(tensor.shape)
        except BaseException:  # a MemoryError, too: a loan that does not end is never lent again
            for tensor, _ in tensors:
                tensor.payload = _zeros(tensor)
            loans, self._loans = self._loans, []
            for _, _, loan in loans:
                loan.end()
            raise

    def _input(
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

    def store(self, outputs: Mapping[str, Tensor]) -> None:
        """Copy the outputs, and drop them when inputs are lent: they may be the same arrays. Raises NaiadError."""
        for name, target in self._outputs.items():
            tensor = outputs.get(name)
            if tensor is not None and not target.take(tensor) and tensor.array.nbytes:
                target.store(tensor, _content(tensor))
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

    def for_inputs(self, inputs: Mapping[str, Tensor]) -> "SharedMemoryIO | None":
        """For a request made on behalf of this one with these inputs; it lends nothing."""
        io = request_io(inputs, {})
        if io is not None:
            io.may_lend = False
        return io


def _content(tensor: Tensor) -> Buffer:
    """The bytes of a tensor that has some, as they go to shared memory."""
    if tensor.datatype == "BYTES":
        return pack_strings(tensor.array.ravel().tolist())
    return np.ascontiguousarray(tensor.array).data.cast("B")


def _zeros(tensor: Tensor) -> np.ndarray:
    """Zeros in place of what cannot be read, which take no memory: all strings are the same empty one."""
    dtype = tensor_type(tensor.datatype).dtype
    if tensor.datatype != "BYTES":
        try:
            return np.zeros(tensor.shape, dtype)
        except MemoryError:
            pass  # no address space for so many
    return np.broadcast_to(np.array(b"" if tensor.datatype == "BYTES" else 0, dtype), tensor.shape)


def request_io(inputs: Mapping[str, Tensor], outputs: Mapping[str, OutputTarget | None]) -> SharedMemoryIO | None:
    """What the worker does for a request with these inputs, None where that is not worth it.

    `outputs` are the targets of the outputs by their names, None for one that goes into the response.
    """
    reads = bool(_deferred(inputs))
    large = {
        name: target
        for name, target in outputs.items()
        if isinstance(target, SharedOutput) and _takes_long(target.region, target.byte_size)
    }
    return SharedMemoryIO(reads, large) if reads or large else None


def _deferred(inputs: Mapping[str, Tensor]) -> list[tuple[Tensor, SharedContent]]:
    """The tensors that are still to be read, with their payloads."""
    return [(tensor, tensor.payload) for tensor in inputs.values() if isinstance(tensor.payload, SharedContent)]

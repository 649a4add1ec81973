"""What travels between a frontend, the kernel and a backend: tensors, requests and responses.

These are plain slotted dataclasses, not frozen ones: freezing costs 0.5 µs an object, and a request makes five of them.
Nobody changes one after handing it on, but for what becomes of a request on its way: see `Request`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from naiad.datatypes import fp32_to_bf16, tensor_type, wire_name_of
from naiad.devices import HOST, Device, DeviceTensor, OnDevice, is_on_device

if TYPE_CHECKING:
    from naiad.errors import NaiadError
    from naiad.tracing import Trace

ParameterValue = bool | int | float | str
"""A request or response parameter; integers are signed 64-bit."""


class SupportsDLPack(Protocol):
    """Anything that offers its memory by the DLPack protocol of the Python array API standard."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


class DeferredPayload(ABC):
    """The payload of a tensor whose bytes lie elsewhere, such as in shared memory, and are read when they are needed.

    The worker reads them just before it executes the request, by the request's `RequestIO`.
    """

    __slots__ = ()

    @abstractmethod
    def fetch(self) -> np.ndarray:
        """The tensor in host memory, copied once. Raises InvalidArgumentError when its bytes are not there any more."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How many bytes of memory of the host it takes, -1 for what lies on a device."""

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.fetch().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


@dataclass(slots=True, eq=False)
class Tensor:
    """A named tensor: wire `datatype` (`FP32`, `BYTES`, …), `shape` with the batch dimension where the model has one.

    `payload` is a numpy array of that shape (BYTES: object array of `bytes`; BF16: `uint16` bits), often a read-only
    view on a received buffer, or any object with `__dlpack__`; what lives on a device is a `naiad.devices.DeviceTensor`
    once the kernel has taken it in.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    payload: np.ndarray | SupportsDLPack

    @classmethod
    def of(cls, name: str, value: Any, datatype: str = "") -> "Tensor":
        """A tensor over an array, anything with `__dlpack__`, or nested lists; the datatype follows from the dtype.

        What lies on a device stays there, unless it is asked for in another datatype. Raises InvalidArgumentError when
        the protocol has no datatype for it.
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
        """The tensor as a numpy array in host memory, without a copy where it already is there.

        A DeviceTensor is brought there once, any other payload on a device each time.
        """
        if isinstance(self.payload, np.ndarray):
            return self.payload
        return _over_dlpack(self.payload).reshape(self.shape)

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.payload.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.payload.__dlpack_device__()


def host_array(value: Any) -> np.ndarray:
    """An array over an array (itself), anything with `__dlpack__`, or nested lists; a copy of what lies on a device.

    Lists of text become object arrays: numpy's own text arrays lose NUL bytes at the end of an element.
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
    """An object array of `bytes`, same shape, from `S`, `U` or object arrays; `str` elements are encoded as UTF-8.

    An object array that holds nothing but `bytes` is given back as it is.
    """
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


class RequestIO(Protocol):
    """The tensors of one request that do not travel in its messages, such as those in shared memory.

    The worker that executes the request fetches the inputs and stores the outputs, and not the event loop.
    `may_lend` allows that inputs are lent to the model where they are. The kernel takes it back where others than the
    model may read them, or an output that was stored.
    """

    may_lend: bool

    @property
    def on_device(self) -> OnDevice | None:
        """Which outputs may stay on which devices until they are stored, None where all come to the host."""
        ...

    def fetch(self, devices: Collection[Device] = (), lend: bool = False) -> None:
        """Get the inputs: lent where that is allowed, where they are if on one of these devices, or as copies.

        Raises InvalidArgumentError; zeros stand for the inputs that could not be read then.
        """
        ...

    def store(self, outputs: Mapping[str, Tensor]) -> None:
        """Copy the outputs to where the caller wants them. Raises NaiadError."""
        ...

    def give_back(self) -> bool:
        """End the loans of inputs, when nothing but the model refers to them; whether the model only read them.

        Raises InvalidArgumentError when their owner has taken the memory away meanwhile.
        """
        ...

    def for_inputs(self, inputs: Mapping[str, Tensor]) -> "RequestIO | None":
        """What fetches those of these inputs that are deferred, for a request made on behalf of this one.

        It lends nothing: other requests may have the same inputs. None where none of them is deferred.
        """
        ...


@dataclass(slots=True, eq=False)
class Request:
    """One request to a model.

    `version` 0 asks for the largest READY version. `requested` names the outputs wanted, () all of them.
    `priority` 0 is the model's default level. `timeout_microseconds` is the caller's queue timeout (0: none);
    `deadline` is an absolute time of `time.monotonic()`, after which the caller wants no answer.
    `correlation_id` 0 or "" is no sequence. `trace` follows the request where it is traced; `transfer` fetches and
    stores the tensors that do not travel in its messages. `on_device` says which outputs may stay on which devices,
    None that all come to the host. `received_ns` is when all of it had come, by `time.monotonic_ns()`;
    0 is when it is submitted.

    `cancelled` is set by the kernel when nobody waits for the answer any more; whoever executes the request may look
    at it, or set `on_cancelled` before looking: it is called once then, on the event loop's thread, and must return at
    once. `caller` is the kernel's: who waits for the answer of a request that a model or an ensemble made. Whoever
    makes requests on behalf of another one copies it.
    """

    model_name: str
    inputs: Mapping[str, Tensor]
    version: int = 0
    id: str = ""
    requested: tuple[str, ...] = ()
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    priority: int = 0
    timeout_microseconds: int = 0
    deadline: float | None = None
    correlation_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    trace: "Trace | None" = None
    cancelled: bool = False
    on_cancelled: Callable[[], None] | None = None
    caller: object | None = None
    transfer: RequestIO | None = None
    received_ns: int = 0
    on_device: OnDevice | None = None


@dataclass(slots=True, eq=False)
class Response:
    """One response to a request; `final` marks the last, and only decoupled models send more or fewer than one.

    A final response without outputs, error and parameters (`is_empty`) only says that the request is over. `error` is
    that of one response among several: others may follow. An error that ends the request is no response.
    """

    model_name: str
    version: int
    id: str
    outputs: Mapping[str, Tensor]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    final: bool = True
    error: "NaiadError | None" = None

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing but that the request is over."""
        return self.final and not self.outputs and not self.parameters and self.error is None

"""What travels between a frontend, the kernel and a backend: requests, responses, and the tensors of both.

These are plain slotted dataclasses, not frozen ones: freezing costs 0.5 µs an object, and a request makes five of them.
Nobody changes one after handing it on, but for what becomes of a request on its way: see `Request`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from naiad.devices import Device, OnDevice
from naiad.errors import NaiadError
from naiad.tensors import DeferredPayload, SupportsDLPack, Tensor, bytes_array, host_array
from naiad.tracing import Trace

__all__ = [
    "DeferredPayload",
    "ParameterValue",
    "Request",
    "RequestIO",
    "Response",
    "SupportsDLPack",
    "Tensor",
    "bytes_array",
    "host_array",
]

ParameterValue = bool | int | float | str
"""A request or response parameter; integers are signed 64-bit."""


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
    trace: Trace | None = None
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
    error: NaiadError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing but that the request is over."""
        return self.final and not self.outputs and not self.parameters and self.error is None

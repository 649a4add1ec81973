"""Requests and responses, the messages between frontends, the kernel and backends; and the traces of requests.

They are slotted dataclasses, not frozen ones: freezing costs 0.5 µs an object, and a request makes five of them. Only
the fields of a `Request` that say so change after it is submitted.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from naiad.errors import NaiadError
from naiad_tensors.devices import Device, OnDevice
from naiad_tensors.tensors import Tensor

ParameterValue = bool | int | float | str
"""A request or response parameter; integers are signed 64-bit."""


class RequestIO(Protocol):
    """The tensors of one request that are not in its messages, such as those in shared memory.

    The worker that executes the request fetches the inputs and stores the outputs. `may_lend` allows to lend inputs to
    the model without a copy; the kernel clears it if a reader other than the model may get them.
    """

    may_lend: bool

    @property
    def on_device(self) -> OnDevice | None:
        """Which outputs may stay on which devices until they are stored, None if all come to the host."""

    def fetch(self, inputs: Mapping[str, Tensor], devices: Collection[Device] = (), lend: bool = False) -> None:
        """Get the deferred ones of the inputs: lent if allowed, in place on one of these devices, else as copies.

        Raises InvalidArgumentError; the inputs that could not be read are zeros then.
        """

    def store(self, outputs: Mapping[str, Tensor]) -> None:
        """Copy the outputs to their targets. Raises NaiadError."""

    def give_back(self) -> bool:
        """End the loans of inputs, to which the model alone refers; False if the model wrote to them.

        Raises InvalidArgumentError if their owner has freed the memory.
        """

    def for_inputs(self, inputs: Mapping[str, Tensor]) -> "RequestIO | None":
        """The RequestIO of a derived request with these inputs, which lends nothing; None if none is deferred."""


@dataclass(frozen=True, slots=True)
class JoinedBatch:
    """The batch that a request was executed in: the instance, its items and requests, and why it was closed."""

    instance: str
    batch_size: int
    requests: int
    reason: str


class Trace(Protocol):
    """The trace of one request: its events, in order. Every method is for any thread.

    `version` is 0 until the kernel has chosen it. Times are `time.monotonic_ns()`. Nothing is recorded after `end`,
    which the code that began the trace calls. For the kernel, an `EventTrace` needs only `record` and `tensors`.
    """

    version: int

    def record(self, event: str, ns: int | None = None) -> None:
        """Record an event (`REQUEST_END`, `HTTP_SEND_END`, …) at that time; None: now."""

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Record copies of these tensors for an activity (`TENSOR_QUEUE_INPUT`, …)."""

    def queued(self, version: int, request: "Request", model_request: "Request") -> None:
        """The request waits at that version of its model, which gets it as `model_request`."""

    def executing(self, batch: JoinedBatch, ns: int) -> None:
        """The batch that the request joined started to execute at that time."""

    def executed(self, started_ns: int, phases: tuple[int, int, int]) -> None:
        """An execution ended, with these nanoseconds of compute input, infer and output; another may follow."""

    def responded(self, outcome: "Response | NaiadError") -> None:
        """The request got a response or an error."""

    def child(self, model: str, version: int = 0, request_id: str = "") -> "Trace":
        """The trace of a request that this one causes, such as a step of an ensemble; the caller ends it."""

    def current(self) -> AbstractContextManager[None]:
        """Make the innermost span OpenTelemetry's current one on this thread while the block runs."""

    def context(self) -> str:
        """A JSON object of the W3C headers that make other spans children of this trace; "" without any."""

    def end(self) -> None:
        """Record nothing more. Harmless when repeated."""


@dataclass(slots=True, eq=False)
class Request:
    """One request to a model.

    `version` 0 is the largest READY version. `requested` names outputs, () all of them. `priority` 0 is the model's
    default level. `timeout_microseconds` is the caller's queue timeout (0: none); `deadline` the time of
    `time.monotonic()` at which the request fails. `correlation_id` 0 or "" is no sequence. `trace` records the events
    of a traced request; `transfer` fetches and stores the tensors that are not in its messages. `on_device` says which
    outputs may stay on which devices, None that all come to the host. `received_ns` is the `time.monotonic_ns()` at
    which it was complete, 0 if that is when it is submitted.

    The kernel sets `cancelled` when the caller cancels. Code that executes the request may read it, or set
    `on_cancelled` and read it then: `on_cancelled` is called once, on the event loop's thread, and must return at once.
    `caller` is the kernel's, and copied to requests that are made for another one.
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

    A final response with nothing in it only ends the request, unless it is `explicit`: the model sent it beside its
    final flag. `error` is that of one response among several; an error that ends the request is not a response.
    """

    model_name: str
    version: int
    id: str
    outputs: Mapping[str, Tensor]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    final: bool = True
    error: NaiadError | None = None
    explicit: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it only ends the request."""
        return self.final and not self.outputs and not self.parameters and self.error is None and not self.explicit

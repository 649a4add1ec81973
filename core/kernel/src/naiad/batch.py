"""A batch: the requests that one execution answers, one by one or joined along the batch dimension, and its answer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from time import monotonic_ns
from typing import Any, Protocol

import numpy as np

from naiad.errors import InternalError, NaiadError
from naiad.types import ParameterValue, Request
from naiad_tensors.devices import Device, DeviceTensor, is_on_device
from naiad_tensors.laid_out import join_rows
from naiad_tensors.ragged import BatchLayout


@dataclass(slots=True)
class Reply:
    """One request's answer: outputs by name (arrays or anything with `__dlpack__`) and response parameters.

    Shapes include the batch dimension where the model has one. Not frozen, for the reason in `naiad.types`.
    """

    outputs: Mapping[str, Any]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reschedule:
    """In place of a reply: queue the request again, for one more execution. For models with `iterative_sequence`.

    `outputs` are the states of the next execution, by the names of their outputs; other states stay as they are.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)


RESCHEDULE = Reschedule()
"""Queue the request again, and leave its states as they are."""

Answer = Mapping[str, Any] | Sequence[Reply | NaiadError | Reschedule | None]
"""The result of `execute`: one array per output for the whole batch, or one reply or error per request, in order.

None is for a request that is answered through its `Batch.sender`, RESCHEDULE for one that is executed again, with the
same sender.
"""


class Sender(Protocol):
    """Sends the responses of one request, on any thread, also after `execute` has returned.

    A model that is not decoupled sends exactly one response. A sender that is dropped before the final response fails
    its request.
    """

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        """Send a response, or None with `final` to end the request; False once the request is cancelled.

        Waits for a slow caller, except on the event loop's thread. Raises InternalError after `final`, and
        ModelFailedError for a reply that the configuration does not allow.
        """

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> "Future[None] | None":
        """Send without waiting: None, or a future that is done when the caller takes more."""

    def is_cancelled(self) -> bool:
        """Whether the request is cancelled."""


def _no_kernel(_index: int) -> Sender:
    raise InternalError("this batch was not made by a server, and cannot send responses")


class Batch:
    """The requests of one execution, in order; their inputs have the shapes of the model (after `reshape`).

    `sizes` are their batch sizes and `size` the sum (1 for a model without batching, which gets one request at a time).
    `layout` makes the tensors that do not hold one row for each item, None without any. Compute input ends with the
    last join, and compute infer with the return of `execute`, unless the backend marks them.
    """

    __slots__ = ("_joined", "_open", "_taken", "infer_done_ns", "input_done_ns", "layout", "requests", "size", "sizes")

    def __init__(
        self,
        requests: Sequence[Request],
        sizes: Sequence[int],
        open_sender: Callable[[int], Sender] = _no_kernel,
        layout: BatchLayout | None = None,
        senders: dict[int, Sender] | None = None,
    ) -> None:
        """`senders` were taken in an earlier execution of the requests."""
        self._open = open_sender
        self._taken = senders
        self.layout = layout
        self.requests = requests
        self.sizes = sizes
        self.size = sizes[0] if len(sizes) == 1 else sum(sizes)
        self.input_done_ns = 0
        self.infer_done_ns = 0
        self._joined: dict[str, np.ndarray] = {}

    @property
    def streams(self) -> bool:
        """Whether the sender of any request was taken."""
        return self._taken is not None

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs that every request has (an optional one is in all or none), and the batch inputs."""
        inputs = self.requests[0].inputs
        return tuple(inputs) if self.layout is None else (*inputs, *self.layout.generated_names(inputs))

    @property
    def batch_input_names(self) -> tuple[str, ...]:
        """The targets of the configuration's `batch_input`."""
        return () if self.layout is None else self.layout.generated_names(self.requests[0].inputs)

    def input(self, name: str) -> np.ndarray:
        """The tensors of that input, joined along dimension 0 (once); of a single request, its own array.

        A ragged input is one-dimensional: all elements of all requests, in order. A batch input has the value of its
        kind for the whole batch. A shape tensor of a model that batches is the batch size, followed by the values of
        one request, which all have. The array may be read-only. Raises KeyError for an input that the requests lack.
        """
        layout = self.layout if self.layout is not None and self.layout.covers(name) else None
        if layout is None and len(self.requests) == 1:
            return self.requests[0].inputs[name].array
        joined = self._joined.get(name)
        if joined is None:
            if layout is not None:
                joined = layout.input(name, self.requests, self.sizes)
            else:
                joined = join_rows(name, [request.inputs for request in self.requests])
            self._joined[name] = joined
            self.input_done_ns = monotonic_ns()
        return joined

    def resident(self, name: str, devices: Collection[Device]) -> Sequence[DeviceTensor] | None:
        """The tensors of that input, one a request, if all lie on one and the same of these devices.

        None otherwise, and for an input of the `layout`: use `input` then. Raises KeyError as `input` does.
        """
        if self.layout is not None and self.layout.covers(name):
            return None
        tensors: list[DeviceTensor] = []
        for request in self.requests:
            payload = request.inputs[name].payload
            if isinstance(payload, np.ndarray) or not is_on_device(payload):
                return None
            tensor = DeviceTensor.of(payload)
            if tensor.device not in devices or (tensors and tensor.device != tensors[0].device):
                return None
            tensors.append(tensor)
        return tensors

    def may_stay(self, output: str, device: Device) -> bool:
        """Whether any request takes that output on that device; the kernel copies it for the others."""
        stays = (request.on_device for request in self.requests)
        return any(on_device is not None and device in on_device.get(output, ()) for on_device in stays)

    def alone(self, index: int) -> "Batch":
        """A batch of `requests[index]` alone, for the same model; it has no senders."""
        return Batch([self.requests[index]], [self.sizes[index]], layout=self.layout)

    def sender(self, index: int) -> Sender:
        """The sender of `requests[index]`, the same one in each call; `execute` answers that request with None."""
        self._taken = {} if self._taken is None else self._taken
        if index not in self._taken:
            self._taken[index] = self._open(index)
        return self._taken[index]

    def taken_sender(self, index: int) -> Sender | None:
        """The sender of `requests[index]`, None where it was not taken."""
        return self._taken.get(index) if self._taken is not None else None

    def cut(self, answer: Answer) -> Answer:
        """The answer, its outputs in the shapes that each request gets where the `layout` cuts them.

        One array per output becomes one reply per request. Raises ModelFailedError for an array of another size.
        """
        layout = self.layout
        if layout is None or not layout.cuts:
            return answer
        if isinstance(answer, Mapping):
            return [Reply(outputs) for outputs in layout.cut(answer, self.requests, self.sizes)]
        if not isinstance(answer, Sequence) or len(answer) != len(self.requests):
            return answer
        return [
            replace(reply, outputs=layout.shaped(reply.outputs, request, size)) if isinstance(reply, Reply) else reply
            for reply, request, size in zip(answer, self.requests, self.sizes, strict=True)
        ]

    def wants(self, output: str) -> bool:
        """Whether any request asks for that output."""
        return any(not request.requested or output in request.requested for request in self.requests)

    def mark_input_done(self) -> None:
        """The inputs are ready for the framework: compute infer starts."""
        self.input_done_ns = monotonic_ns()

    def mark_infer_done(self) -> None:
        """The framework has answered: compute output starts."""
        self.infer_done_ns = monotonic_ns()

"""A batch: the requests that one execution answers, one by one or joined along the batch dimension, and its answer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Any, Protocol

import numpy as np

from naiad.devices import Device, DeviceTensor, is_on_device
from naiad.errors import InternalError, NaiadError
from naiad.types import ParameterValue, Request


@dataclass(slots=True)
class Reply:
    """One request's answer: outputs by name (arrays or anything with `__dlpack__`) and response parameters.

    Shapes include the batch dimension where the model has one. Not frozen, for the reason given in `naiad.types`.
    """

    outputs: Mapping[str, Any]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reschedule:
    """In place of a reply: the request is queued again, and executed once more in a batch that is made anew.

    Only models with `iterative_sequence` may ask for it. `outputs` are the states that the next execution finds, by the
    names of their outputs; a state that is not among them stays as it is. Nothing of it goes to the caller.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)


RESCHEDULE = Reschedule()
"""Queue the request again, and leave its states as they are."""

Answer = Mapping[str, Any] | Sequence[Reply | NaiadError | Reschedule | None]
"""What `execute` returns: one array an output for the whole batch, or one reply or error for each request, in order.

None stands for a request that is answered through its `Batch.sender`, now or later; RESCHEDULE for one that is to be
executed again. Its sender, if it was taken, goes on: the next batch gives the same one.
"""


class InputLayout(Protocol):
    """How the inputs of a batch are made that do not hold one row for each item."""

    def covers(self, name: str) -> bool:
        """Whether that input is made by `input`, and not by joining rows."""
        ...

    def generated_names(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """The inputs that the server makes for a batch of requests with these inputs."""
        ...

    def input(self, name: str, requests: Sequence[Request], sizes: Sequence[int]) -> np.ndarray:
        """An input that this layout covers, for a batch of these requests. Raises KeyError when they lack it."""
        ...


class Sender(Protocol):
    """The way of one request's responses to its caller, for any thread and also after `execute` has returned.

    A model that is not decoupled sends exactly one response. A sender that is dropped before it was told that all is
    sent fails its request, so that no caller waits for ever.
    """

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        """Send a response, or None with `final` to say that there is no more; whether anybody still wants them.

        Waits while the caller reads more slowly than the model sends, except on the event loop's thread. Raises
        InternalError after `final`, and ModelFailedError for a reply that the configuration does not allow.
        """
        ...

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> "Future[None] | None":
        """Send without waiting: None when there is room for more, else a future that is done when there is."""
        ...

    def is_cancelled(self) -> bool:
        """Whether nobody wants further responses."""
        ...


def _no_kernel(_index: int) -> Sender:
    raise InternalError("this batch was not made by a server, so there is nobody to send responses to")


class Batch:
    """What an instance executes.

    `requests` are the requests one by one, in order; their inputs have the shapes that the model sees (`reshape` is
    done). `sizes` are their batch sizes and `size` the sum (1 for a model without batching, which gets one request at a
    time). `layout` names the tensors that do not hold one row for each item, None where all do. The border between
    compute input and compute infer is the end of the last join, unless the backend marks it; the border to compute
    output is the return of `execute`, unless the backend marks that.
    """

    __slots__ = (
        "_joined",
        "_open",
        "_senders",
        "infer_done_ns",
        "input_done_ns",
        "layout",
        "requests",
        "size",
        "sizes",
    )

    def __init__(
        self,
        requests: Sequence[Request],
        sizes: Sequence[int],
        open_sender: Callable[[int], Sender] = _no_kernel,
        layout: InputLayout | None = None,
        senders: dict[int, Sender] | None = None,
    ) -> None:
        """`open_sender` opens the sender of a request; `senders` were taken in an earlier execution of theirs."""
        self._open = open_sender
        self._senders = senders
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
        return self._senders is not None

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs of this batch: those that every request has, and the batch inputs that the server makes.

        An optional input is in all requests of a batch or in none.
        """
        given = self.requests[0].inputs
        return tuple(given) if self.layout is None else (*given, *self.layout.generated_names(given))

    @property
    def batch_input_names(self) -> tuple[str, ...]:
        """The targets of the configuration's `batch_input`, which `input` gives and no single request has."""
        return () if self.layout is None else self.layout.generated_names(self.requests[0].inputs)

    def input(self, name: str) -> np.ndarray:
        """All requests' tensors of that input, joined along dimension 0 (made once); for one request its own array.

        A ragged input is one-dimensional, also for one request: all elements of all requests, in order. A batch input
        is what its kind says of the whole batch. A shape tensor of a model that batches is the batch size, followed by
        the values of any request, which are those of every other. The array may be read-only. Raises KeyError when the
        requests do not have that input.
        """
        if self.layout is not None and self.layout.covers(name):
            return self._laid_out(name, self.layout)
        if len(self.requests) == 1:
            return self.requests[0].inputs[name].array
        joined = self._joined.get(name)
        if joined is None:
            joined = np.concatenate([request.inputs[name].array for request in self.requests])
            self._joined[name] = joined
            self.input_done_ns = monotonic_ns()
        return joined

    def resident(self, name: str, devices: Collection[Device]) -> Sequence[DeviceTensor] | None:
        """The tensors of that input, one a request, if all of them lie on one and the same of these devices.

        None otherwise, or where the input is no rows (`layout`): `input` has it in host memory then. So a batch whose
        tensors come from the host and from a device is joined on the host. Raises KeyError as `input` does.
        """
        if self.layout is not None and self.layout.covers(name):
            return None
        found: list[DeviceTensor] = []
        for request in self.requests:
            payload = request.inputs[name].payload
            if isinstance(payload, np.ndarray) or not is_on_device(payload):
                return None
            tensor = DeviceTensor.of(payload)
            if tensor.device not in devices or (found and tensor.device != found[0].device):
                return None
            found.append(tensor)
        return found

    def may_stay(self, output: str, device: Device) -> bool:
        """Whether any request of this batch takes that output where it is, on that device.

        The outputs of other requests are brought to the host, if need be, by the kernel.
        """
        for request in self.requests:
            if request.on_device is not None and device in request.on_device.get(output, ()):
                return True
        return False

    def alone(self, index: int) -> "Batch":
        """A batch of `requests[index]` alone, for the same model; it has no senders."""
        return Batch([self.requests[index]], [self.sizes[index]], layout=self.layout)

    def sender(self, index: int) -> Sender:
        """The way to send the responses of `requests[index]` one by one; the same object each time it is asked for.

        `execute` answers that request with None then.
        """
        if self._senders is None:
            self._senders = {}
        sender = self._senders.get(index)
        if sender is None:
            sender = self._senders[index] = self._open(index)
        return sender

    def taken_sender(self, index: int) -> Sender | None:
        """The sender of `requests[index]`, None where it was not taken."""
        return self._senders.get(index) if self._senders is not None else None

    def wants(self, output: str) -> bool:
        """Whether any request of this batch asked for that output."""
        return any(not request.requested or output in request.requested for request in self.requests)

    def mark_input_done(self) -> None:
        """Say that the inputs are ready for the framework: compute infer starts."""
        self.input_done_ns = monotonic_ns()

    def mark_infer_done(self) -> None:
        """Say that the framework has answered: compute output starts."""
        self.infer_done_ns = monotonic_ns()

    def _laid_out(self, name: str, layout: InputLayout) -> np.ndarray:
        made = self._joined.get(name)
        if made is None:
            made = self._joined[name] = layout.input(name, self.requests, self.sizes)
            self.input_done_ns = monotonic_ns()
        return made

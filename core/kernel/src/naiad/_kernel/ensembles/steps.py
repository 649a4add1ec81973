"""One step of one request to an ensemble: the request to its model, and what its response says of the sequence."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import numpy as np

from naiad._kernel.answers import Outcome
from naiad._kernel.call import Call
from naiad._kernel.calls.rooms import Hold, Leaf
from naiad._kernel.served import ServedVersion
from naiad._kernel.version import ModelVersion
from naiad.devices import DeviceTensor
from naiad.ensembles import SequenceFlags, StepStart
from naiad.errors import NaiadError
from naiad.types import ParameterValue, Request, Tensor

if TYPE_CHECKING:
    from naiad._kernel.ensembles.call import EnsembleCall
    from naiad._kernel.ensembles.version import EnsembleVersion
    from naiad.tracing import Trace

_NOTHING: Mapping[str, ParameterValue] = {}
_Error = TypeVar("_Error", bound=NaiadError)


@runtime_checkable
class _Composed(Protocol):
    """A call that is answered by others."""

    def leaves(self) -> list[Leaf]:
        """All that it waits for."""
        ...


class StepCall:
    """A step that was started for `owner`; `call` is that of its model, None before it and after it is over.

    `version` is the one that it was given to, and `hold` what it waits for where there is no room.
    """

    __slots__ = ("call", "hold", "owner", "start", "trace", "version")

    def __init__(self, owner: "EnsembleCall", start: StepStart) -> None:
        self.owner = owner
        self.start = start
        self.call: Call | None = None
        self.trace: Trace | None = None
        self.version: ServedVersion | None = None
        self.hold: Hold | None = None

    def submit(self, ensemble: "EnsembleVersion", request: Request) -> None:
        """Send it to its model, with all that the caller of the ensemble said. Raises what the model refuses."""
        start, flags = self.start, self.start.flags
        version: ServedVersion = ensemble.steps[start.step]
        sent = Request(
            version.name,
            tensors_of(start.inputs, start.shapes),
            version.version,
            request.id,
            start.requested,
            request.parameters,
            request.priority,
            request.timeout_microseconds,
            request.deadline,
            request.correlation_id,
            request.sequence_start,
            request.sequence_end,
        )
        sent.caller = request.caller
        sent.on_device = ensemble.residence.of(start.step, request.on_device)
        if flags is not None:
            _override(sent, flags)
        if sent.correlation_id:
            version = self._carrying_on(ensemble, sent) or version
        if request.trace is not None:
            sent.trace = self.trace = request.trace.child(version.name, version.version, request.id)
        if request.transfer is not None:
            sent.transfer = request.transfer.for_inputs(sent.inputs)
        self.version = version
        self.call = version.submit(sent, self._deliver, streams=True)

    def leaves(self) -> list[Leaf]:
        """What it waits for while it is under way; nothing where that cannot be told."""
        call, version = self.call, self.version
        if isinstance(call, _Composed):
            return call.leaves()
        return [(version, call)] if call is not None and isinstance(version, ModelVersion) else []

    def let_in(self) -> None:
        """It waits for room no more."""
        hold, self.hold = self.hold, None
        if hold is not None:
            hold.over = True

    def _carrying_on(self, ensemble: "EnsembleVersion", sent: Request) -> ServedVersion | None:
        """The version that is about to end and has the sequence under way, where there is one."""
        bound, sent.version = sent.version, ensemble.composition.steps[self.start.step].version
        found = ensemble.leaving(sent)
        sent.version = bound if found is None else found.version
        return found

    def over(self) -> None:
        """It has been answered to the end, or was taken back."""
        call, self.call = self.call, None  # they know each other: tensors would wait for the garbage collector
        if call is not None and not call.over:
            call.cancel()
        if self.trace is not None:
            self.trace.end()

    def _deliver(self, outcome: Outcome) -> None:
        self.owner.answered(self, outcome)


def tensors_of(values: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The tensors under these names, over the same memory, in the given shapes where there are any."""
    if shapes:
        values = {name: _reshaped(value, shapes[name]) if name in shapes else value for name, value in values.items()}
    return {
        name: value if value.name == name else Tensor(name, value.datatype, value.shape, value.payload)
        for name, value in values.items()
    }


def _reshaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    payload = tensor.payload
    given = payload.reshape(shape) if isinstance(payload, np.ndarray | DeviceTensor) else payload
    return Tensor(tensor.name, tensor.datatype, shape, given)


def flags_in(parameters: Mapping[str, ParameterValue]) -> SequenceFlags | None:
    """What a response says of the sequence, None when it says nothing."""
    correlation_id = parameters.get("sequence_id")
    start, end = parameters.get("sequence_start"), parameters.get("sequence_end")
    if correlation_id is None and start is None and end is None:
        return None
    return SequenceFlags(
        correlation_id if isinstance(correlation_id, int | str) and not isinstance(correlation_id, bool) else None,
        None if start is None else bool(start),
        None if end is None else bool(end),
    )


def parameters_of(request: Request, flags: SequenceFlags | None) -> Mapping[str, ParameterValue]:
    """What a response says of the sequence that it belongs to; nothing outside of one."""
    if flags is None and not request.correlation_id:
        return _NOTHING
    told = flags or SequenceFlags()
    return {
        "sequence_id": request.correlation_id if told.correlation_id is None else told.correlation_id,
        "sequence_start": request.sequence_start if told.start is None else told.start,
        "sequence_end": request.sequence_end if told.end is None else told.end,
    }


def within(ensemble: "EnsembleVersion", error: _Error, step: StepCall | None) -> _Error:
    """The same error, of the same kind, saying that it happened in an ensemble, and at its end in which step.

    Clients look for the step's own words right behind the ensemble's name.
    """
    told = type(error).__new__(type(error))
    told.__dict__.update(error.__dict__)
    where = ""
    if step is not None:
        number = step.start.step
        where = f" (step {number} of '{ensemble.name}', model '{ensemble.steps[number].name}')"
    told.args = (f"in ensemble '{ensemble.name}', {error}{where}",)
    return told


def _override(request: Request, flags: SequenceFlags) -> None:
    if flags.correlation_id is not None:
        request.correlation_id = flags.correlation_id
    if flags.start is not None:
        request.sequence_start = flags.start
    if flags.end is not None:
        request.sequence_end = flags.end

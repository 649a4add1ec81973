"""One step of an ensemble in flight: the request to its model, and what its failure is called."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from naiad.errors import NaiadError
from naiad.in_flight import InflightRequest, Occupant
from naiad.servables import Servable
from naiad.server import Outcome
from naiad.types import Request, Trace
from naiad_scheduler_ensemble.bound import BoundEnsemble
from naiad_scheduler_ensemble.moves import StepStart
from naiad_scheduler_ensemble.step_requests import override, tensors_of

_Error = TypeVar("_Error", bound=NaiadError)


class StepOwner(Protocol):
    """The request to the ensemble that a step belongs to."""

    request: Request

    def admitted(self, step: "StepCall") -> None:
        """There is room for a step that was held."""

    def answered(self, step: "StepCall", outcome: Outcome) -> None:
        """A step has responded, or failed."""


class StepCall:
    """A step that was started for `owner`; `call` is the request to its model, None before it and after it is over."""

    __slots__ = ("call", "owner", "start", "trace")

    def __init__(self, owner: StepOwner, start: StepStart) -> None:
        self.owner = owner
        self.start = start
        self.call: InflightRequest | None = None
        self.trace: Trace | None = None

    def submit(self, ensemble: BoundEnsemble, request: Request) -> None:
        """Send it to its model, with all that the caller of the ensemble said. Raises what the model refuses."""
        start, flags = self.start, self.start.flags
        version = ensemble.steps[start.step]
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
            override(sent, flags)
        if sent.correlation_id:
            version = self._continuing(ensemble, sent) or version
        if request.trace is not None:
            sent.trace = self.trace = request.trace.child(version.name, version.version, request.id)
        if request.transfer is not None:
            sent.transfer = request.transfer.for_inputs(sent.inputs)
        self.call = version.submit(sent, self._deliver, streams=True)

    @property
    def request(self) -> Request:
        """The request to the ensemble."""
        return self.owner.request

    @property
    def waits_for(self) -> Sequence[Occupant]:
        """The request to its model."""
        return () if self.call is None else (self.call,)

    @property
    def is_paused(self) -> bool:
        """Never: the request to its model is."""
        return False

    def unblock(self) -> None:
        """Nothing: it is not paused."""

    def admitted(self) -> None:
        """There is room for it."""
        self.owner.admitted(self)

    def end(self) -> None:
        """It has been answered to the end, or was taken back."""
        call, self.call = self.call, None  # they know each other: tensors would wait for the garbage collector
        if call is not None and not call.over:
            call.cancel()
        if self.trace is not None:
            self.trace.end()

    def _continuing(self, ensemble: BoundEnsemble, sent: Request) -> Servable | None:
        """The version that is about to end and has the sequence under way, where there is one."""
        bound, sent.version = sent.version, ensemble.composition.steps[self.start.step].version
        continuing_version = ensemble.models.continuing(sent)
        sent.version = bound if continuing_version is None else continuing_version.version
        return continuing_version

    def _deliver(self, outcome: Outcome) -> None:
        self.owner.answered(self, outcome)


def within(ensemble: BoundEnsemble, error: _Error, step: StepCall | None) -> _Error:
    """The same error, of the same kind, saying that it happened in an ensemble, and at its end in which step.

    Clients look for the step's own words right behind the ensemble's name.
    """
    copied = type(error).__new__(type(error))
    copied.__dict__.update(error.__dict__)
    where = ""
    if step is not None:
        number = step.start.step
        where = f" (step {number} of '{ensemble.name}', model '{ensemble.steps[number].name}')"
    copied.args = (f"in ensemble '{ensemble.name}', {error}{where}",)
    return copied

"""An ensemble bound to the versions that serve its steps, with the requests that are under way in it."""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from naiad.errors import NaiadError
from naiad.servables import Capacity, CapacityWaits, ModelResolver, RequestCounters, Servable, WaitTarget
from naiad_scheduler_ensemble.composition import EnsembleComposition
from naiad_scheduler_ensemble.inflight import Inflight
from naiad_scheduler_ensemble.residence import Residence

_LEAVING = "leaving"
"""A request that is over, and waits for nothing, but has not yet made room for another."""


class OpenCall(Protocol):
    """A request to the ensemble that is under way."""

    @property
    def is_waiting(self) -> bool:
        """Whether a step of it waits because there is no room."""
        ...

    def under_way(self, step: int) -> Mapping[Hashable, Sequence[WaitTarget]]:
        """Its runs of that step that are under way, each with all that it waits for."""
        ...

    def fail(self, error: NaiadError) -> None:
        """End it with that error."""
        ...


@dataclass(slots=True, eq=False)
class BoundEnsemble:
    """What the requests to one version of an ensemble share. For the event loop's thread.

    `steps` are the versions that serve the steps; `inflight` holds steps back that have too much under way, None where
    nothing does. `calls` are the requests that are under way; `drained` is set while there are none.
    """

    name: str
    version: int
    composition: EnsembleComposition
    steps: tuple[Servable, ...]
    residence: Residence
    counters: RequestCounters
    models: ModelResolver
    waits: CapacityWaits
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    inflight: Inflight | None = None
    calls: dict[OpenCall, None] = field(default_factory=dict)
    drained: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.inflight = self.composition.backpressure()
        self.drained.set()

    def began(self, call: OpenCall) -> None:
        """That request is under way."""
        self.calls[call] = None
        self.drained.clear()

    def ended(self, call: OpenCall) -> None:
        """That request is over; harmless when it was already."""
        self.calls.pop(call, None)
        if not self.calls:
            self.drained.set()


@dataclass(frozen=True, slots=True)
class StepCapacity(Capacity):
    """The room at one step of an ensemble, of which `max_inflight_requests` leaves only so much."""

    ensemble: BoundEnsemble
    step: int

    def __str__(self) -> str:
        return f"step {self.step} of ensemble '{self.ensemble.name}'"

    @property
    def advice(self) -> str:
        """What to change so that nobody waits for itself here."""
        return "set max_inflight_requests to more than calls wait inside the ensemble at once"

    def under_way(self) -> Mapping[Hashable, Sequence[WaitTarget]]:
        """The requests that the step has under way, each with all that it waits for."""
        ensemble = self.ensemble
        found = {run: targets for call in ensemble.calls for run, targets in call.under_way(self.step).items()}
        if len(found) < ensemble.composition.max_inflight_requests:
            found[_LEAVING] = ()  # the rest is about to make room
        return found

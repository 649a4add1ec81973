"""Bound ensemble: its composition, the versions that serve its steps, and its requests in flight."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from naiad.errors import NaiadError
from naiad.foreign_errors import logged
from naiad.in_flight import Occupancy, Occupant
from naiad.servables import ModelResolver, Servable
from naiad_scheduler_ensemble.composition import EnsembleComposition
from naiad_scheduler_ensemble.inflight import Inflight
from naiad_scheduler_ensemble.residence import Residence
from naiad_statistics.versions import VersionCounters


class HeldStep(Protocol):
    """A step of a request that waits for room."""

    def admitted(self) -> None:
        """There is room for it."""
        ...


class OpenCall(Protocol):
    """A request to the ensemble that is under way."""

    @property
    def is_waiting(self) -> bool:
        """Whether a step of it waits because there is no room."""
        ...

    def running(self, step: int) -> Sequence[Occupant]:
        """Its runs of that step that are under way."""
        ...

    def held(self, step: int) -> Sequence[Occupant]:
        """Its runs of that step that wait for room."""
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
    counters: VersionCounters
    models: ModelResolver
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    inflight: Inflight | None = None
    calls: dict[OpenCall, None] = field(default_factory=dict)
    drained: asyncio.Event = field(default_factory=asyncio.Event)
    _admitted: deque[HeldStep] = field(default_factory=deque)

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

    def admit(self, step: HeldStep) -> None:
        """Let a held step begin, after those that were admitted before it.

        A step that its model refuses makes room for the next one: in a loop, because thousands may wait.
        """
        self._admitted.append(step)
        if len(self._admitted) > 1:
            return
        while self._admitted:
            with logged(f"beginning a step of ensemble '{self.name}' that waited for room", model=self.name):
                self._admitted[0].admitted()
            self._admitted.popleft()

    def occupancy(self) -> Sequence[Occupancy]:
        """The room at each step that has any under way, where `max_inflight_requests` limits it."""
        limit = self.composition.max_inflight_requests
        if not limit or not self.calls:
            return ()
        return tuple(self._room(step, limit) for step in range(len(self.steps)))

    def _room(self, step: int, limit: int) -> Occupancy:
        calls = tuple(self.calls)
        return Occupancy(
            f"room at step {step} of ensemble '{self.name}'",
            "set max_inflight_requests to more than calls wait inside the ensemble at once",
            limit,
            [(run,) for call in calls for run in call.running(step)],
            lambda: [run for call in calls for run in call.held(step)],
        )

"""Callers: the requests on whose behalf a model calls other models, and what is carried over from them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from naiad._kernel.call import Call
from naiad._kernel.worker import Work
from naiad.errors import NaiadError, RequestCancelledError
from naiad.extend import Suspension
from naiad.servables import CapacityWait, WaitTarget
from naiad.types import Request, Tensor


class ExecutingVersion(Protocol):
    """A model version, as those see it who follow calls: what it executes at this moment."""

    name: str

    def __hash__(self) -> int: ...

    @property
    def place_count(self) -> int:
        """How many batches can be executed at once."""
        ...

    @property
    def shares_resources(self) -> bool:
        """Whether executions of this server wait for resources."""
        ...

    def executing(self) -> Sequence[Work]:
        """The batches that are executed at this moment."""
        ...

    def streaming(self) -> Sequence[Call]:
        """The calls whose execution has returned and goes on with them."""
        ...

    def suspend(self, slot: int) -> Suspension | None:
        """The execution at the slot waits for another model, and gives up its grant; None where it holds none."""
        ...


class Begun(Protocol):
    """A call that a caller has begun; `streams` where it takes several responses."""

    streams: bool

    def abort(self, error: NaiadError) -> None:
        """End it with that error."""
        ...

    def lift(self) -> bool:
        """Let what it reads too slowly gather, from now on; whether it was paused."""
        ...


class Caller:
    """Some of the requests that an instance of `model` executes, while it calls others. For the event loop's thread.

    `outer` are the calls of those requests, `place` where they execute, None for what goes on after that. `begun` are
    its calls that have not ended; `waits` those that stand in a queue or execute, each with the version that it was
    given to: the steps of an ensemble, where that is what it called; `capacity_waits` are the steps that wait for room.
    `is_elsewhere` says that its newest call came from another thread than the one that executes.
    """

    __slots__ = ("_crowd", "_version", "begun", "capacity_waits", "is_elsewhere", "model", "outer", "place", "waits")

    def __init__(self, version: ExecutingVersion, outer: Sequence[Call], place: int | None) -> None:
        self.model = version.name
        self._version = version
        self.outer = tuple(outer)
        self.place = place
        self.is_elsewhere = False
        self.begun: dict[Begun, None] = {}
        self.waits: list[tuple[ExecutingVersion, Call]] = []
        self.capacity_waits: list[CapacityWait] = []
        self._crowd = 16

    def wait_for(self, version: ExecutingVersion, call: Call) -> None:
        """A call was given to that version."""
        self.waits.append((version, call))
        if len(self.waits) > self._crowd:  # those that have ended are taken out now and then
            self._crowd = 2 * len(self.open_waits()) + 16

    def open_waits(self) -> Sequence[WaitTarget]:
        """What it waits for at this moment."""
        self.waits = [wait for wait in self.waits if not wait[1].over]
        if self.capacity_waits:
            self.capacity_waits = [wait for wait in self.capacity_waits if not wait.over]
        return [*self.capacity_waits, *self.waits] if self.capacity_waits else self.waits

    def ended(self, begun: Begun) -> None:
        """One of its calls is over; with the last of them it is forgotten, until there is another one."""
        self.begun.pop(begun, None)
        if not self.begun:
            self.waits, self.capacity_waits = [], []
            for call in self.outer:
                call.callers = tuple(each for each in call.callers if each is not self)

    @property
    def has_left(self) -> bool:
        """Whether nobody waits for the answer of any of the requests any more, although it was not given."""
        return all(call.request.cancelled for call in self.outer)

    @property
    def reads_streams(self) -> bool:
        """Whether any of its calls takes several responses."""
        return any(each.streams for each in self.begun)

    @property
    def shares_resources(self) -> bool:
        """Whether executions of this server wait for resources."""
        return self._version.shares_resources

    def suspend(self) -> Suspension | None:
        """It waits for one more answer: its execution gives up its grant meanwhile, where there is a gate."""
        if self.place is None:
            return None
        for work in self._version.executing():
            if work.place == self.place and self.outer[0] in work.calls:
                return self._version.suspend(self.place)
        return None

    def look_whether_left(self) -> None:
        """One of the requests is over: without anybody who waits for one, the calls made for them are taken back."""
        if self.begun and self.has_left:
            for begun in list(self.begun):
                begun.abort(left())

    def on_behalf(self, request: Request) -> Request:
        """The request with the deadline, priority and trace of those that it is made for, unless it has its own."""
        outer = [call.request for call in self.outer]
        deadlines = [each.deadline for each in outer if each.deadline is not None]
        bounds = [] if request.deadline is None else [request.deadline]
        if deadlines and len(deadlines) == len(outer):
            bounds.append(max(deadlines))
        priority = request.priority or min((each.priority for each in outer if each.priority), default=0)
        trace = request.trace or next((each.trace for each in outer if each.trace is not None), None)
        return made(request, deadline=min(bounds, default=None), priority=priority, trace=trace, caller=self)


def left() -> NaiadError:
    """What a call made for callers who have all left is told."""
    return RequestCancelledError("the callers of the requests that this call was made for have left")


def made(request: Request, **carried: object) -> Request:
    """A request of its own with what a model asks, that shares no more than memory, and that is not to be written to.

    The called model gets the arrays themselves, and would write into the caller's.
    """
    asked = Request(
        request.model_name,
        {name: _shared(tensor) for name, tensor in request.inputs.items()},
        version=request.version,
        id=request.id,
        requested=request.requested,
        parameters=request.parameters,
        priority=request.priority,
        timeout_microseconds=request.timeout_microseconds,
        deadline=request.deadline,
        correlation_id=request.correlation_id,
        sequence_start=request.sequence_start,
        sequence_end=request.sequence_end,
        trace=request.trace,
        on_device=request.on_device,
    )
    for name, value in carried.items():
        setattr(asked, name, value)
    if asked.trace is not None:
        asked.trace = asked.trace.child(asked.model_name, asked.version, asked.id)
    return asked


def _shared(tensor: Tensor) -> Tensor:
    array = tensor.payload
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return tensor
    view = array.view()
    view.flags.writeable = False
    return Tensor(tensor.name, tensor.datatype, tensor.shape, view)


def caller_of(version: ExecutingVersion, requests: Sequence[Request]) -> Caller | None:
    """Who calls for these requests, which a version was given; None when they are over.

    The same for the same requests, as long as it has calls under way.
    """
    outer, place = _calls(version, requests)
    if not outer:
        return None
    for caller in outer[0].callers:
        if caller.outer == outer:
            return caller
    caller = Caller(version, outer, place)
    for call in outer:
        call.callers = (*call.callers, caller)
    return caller


def _calls(version: ExecutingVersion, requests: Sequence[Request]) -> tuple[tuple[Call, ...], int | None]:
    """The calls of the requests, and the place where they execute, None where that has gone on without them."""
    wanted = set(map(id, requests))
    for work in version.executing():
        if not wanted.isdisjoint(map(id, work.batch.requests)):
            named = tuple(call for call in work.calls if id(call.request) in wanted)
            return named or tuple(work.calls), work.place
    return tuple(call for call in version.streaming() if id(call.request) in wanted), None

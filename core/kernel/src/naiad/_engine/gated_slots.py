"""Free slots behind an execution gate: the scheduler sees a slot as idle only while the slot holds a grant."""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field

from naiad._engine.streams import ResponseStream
from naiad.errors import InternalError, NaiadError
from naiad.extend import ExecutionGate, Suspension
from naiad.foreign_errors import logged


@dataclass(slots=True, eq=False)
class GatedSlots:
    """The free slots of one queue, whose gate decides which of them may execute. For the event loop's thread.

    Whenever a decision is due, every free slot asks for a grant, and `decide` sees those in `idle` that got one.
    Grants that the decision does not use go back at once. Slots without a grant wait on, and the decision is made
    again when one is granted. `waiting` and `running` are the tickets that wait and that execute. The gate is a
    plugin's: what it raises is logged, and the requests that wait for a grant `fail`.
    """

    _gate: ExecutionGate
    _model: str
    _idle: list[int]
    _decide_with_idle: Callable[[], None]
    _waiting: Collection[int]
    _running: Collection[int]
    _fail: Callable[[NaiadError], None]
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _free: dict[int, None] = field(default_factory=dict)
    _granted: set[int] = field(default_factory=set)
    _deciding: bool = False
    _decision_is_due: bool = False

    def free(self, slot: int) -> None:
        """A slot is free, and gives back its grant; when requests wait, the caller decides next."""
        self._call(self._gate.release, slot)
        self._free[slot] = None
        if not self._waiting:
            self._call(self._gate.grant)

    def lose(self, slot: int) -> None:
        """A slot is gone until it is free again; it is in `idle` no more."""
        self._free.pop(slot, None)
        self._granted.discard(slot)
        self._call(self._gate.release, slot)
        self._call(self._gate.grant)

    def decide(self) -> None:
        """Decide with the slots that are granted now."""
        free = list(self._free) if self._waiting else []
        self._deciding = True
        works = [self._call(self._gate.want, slot, self._take_grant) for slot in free]
        works.append(self._call(self._gate.grant))
        self._deciding = False
        self._use_grants()
        if not all(works):
            self._fail(InternalError(f"the execution gate of model '{self._model}' failed; the log says why"))

    def withdraw(self) -> None:
        """No request waits any more: the free slots want nothing."""
        for slot in self._free:
            self._call(self._gate.release, slot)
        self._call(self._gate.grant)

    def suspend(self, slot: int) -> Suspension | None:
        """The execution at the slot waits for another model; None when it has returned and left a thread behind."""
        if slot not in self._free and slot not in self._granted:
            with self._contained():
                return self._gate.suspend(slot)
        return None

    def suspend_sender(self, stream: ResponseStream, room: "Future[None]") -> "Future[None]":
        """Suspend the execution of a sender until there is `room`; returns what the sender waits for. Any thread."""
        go: Future[None] = Future()
        go.set_running_or_notify_cancel()  # a sender that stops waiting must not cancel what is set here
        self._on_loop(go, lambda: self._suspend_until(stream, room, go))
        return go

    def _contained(self) -> logged:
        return logged(f"the execution gate of model '{self._model}'", model=self._model)

    def _call(self, act: Callable[..., None], *arguments: object) -> bool:
        """Call the gate; what it raises is logged. Returns whether it raised nothing."""
        with self._contained():
            act(*arguments)
            return True
        return False

    def _take_grant(self, slot: int) -> None:
        del self._free[slot]
        self._idle.append(slot)
        self._granted.add(slot)
        if not self._deciding and not self._decision_is_due:
            self._decision_is_due = True
            self._loop.call_soon(self._use_grants)

    def _use_grants(self) -> None:
        """Decide with the granted slots; those that are still idle afterwards give their grants back."""
        self._decision_is_due = False
        granted, self._granted = self._granted, set()
        self._decide_with_idle()
        for slot in granted:
            if slot in self._idle:
                self._idle.remove(slot)
                self._free[slot] = None
                self._call(self._gate.release, slot)
            else:
                self._call(self._gate.started, slot)
        if self._waiting:
            self._call(self._gate.grant)
        else:
            self.withdraw()

    def _suspend_until(self, stream: ResponseStream, room: "Future[None]", go: "Future[None]") -> None:
        executes = stream.call.ticket.id in self._running  # else it has returned, and holds nothing
        suspension = self.suspend(stream.slot) if executes else None
        room.add_done_callback(lambda _: self._on_loop(go, lambda: self._resume_sender(suspension, go)))

    def _resume_sender(self, suspension: Suspension | None, go: "Future[None]") -> None:
        """Let a sender go on; one whose execution also waits for a model goes on at once, without a grant."""
        resumes = False
        if suspension is not None:
            with self._contained():
                is_last = suspension.is_last
                suspension.resume(lambda: go.set_result(None) if is_last else None)
                resumes = is_last
        if not resumes and not go.done():
            go.set_result(None)

    def _on_loop(self, go: "Future[None]", act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop is closed, and nobody waits for responses any more
            go.set_result(None)

"""Conformance check of execution gates, and fake gates that a test opens by hand."""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from naiad.backend import Placement
from naiad.extend import ExecutionGate, GateFactory, Suspension
from naiad.hookspecs import hookimpl
from naiad_config import ModelConfig
from naiad_kit.metrics import MetricFamily, MetricSource
from naiad_testing.simulation import ContractBroken

if TYPE_CHECKING:
    from naiad.options import Settings

__all__ = ["ContractBroken", "FakeGate", "FakeGates", "FakeSuspension", "check_gates"]


class FakeGate:
    """A gate that lets as many slots go at a time as `open` says, when it is asked to `grant`.

    `wanting` are the slots that wait, `holding` those that hold a grant, `executions` those that used one, in order;
    `suspended` are the suspensions so far.
    """

    def __init__(self, open_: int = 0) -> None:
        self.open = open_
        self.wanting: dict[int, Callable[[int], None]] = {}
        self.holding: set[int] = set()
        self.executions: list[int] = []
        self.suspended: list[FakeSuspension] = []
        self.closed = False

    def enter(self, placements: Sequence[Placement]) -> None:
        """All slots are alike here."""

    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        """The slot waits, unless it holds a grant."""
        if slot not in self.holding:
            self.wanting.setdefault(slot, granted)

    def started(self, slot: int) -> None:
        """Write down the execution. Raises AssertionError when the slot holds no grant."""
        if slot not in self.holding:
            raise AssertionError(f"slot {slot} started without a grant")
        self.executions.append(slot)

    def release(self, slot: int) -> None:
        """The slot neither waits nor holds a grant."""
        self.wanting.pop(slot, None)
        self.holding.discard(slot)

    def grant(self) -> None:
        """Let the slots go that came first, as many as `open` says."""
        while self.wanting and len(self.holding) < self.open:
            slot = next(iter(self.wanting))
            granted = self.wanting.pop(slot)
            self.holding.add(slot)
            granted(slot)

    def suspend(self, slot: int) -> "FakeSuspension":
        """The slot holds no grant from now on."""
        self.holding.discard(slot)
        self.suspended.append(FakeSuspension(slot))
        return self.suspended[-1]

    def close(self) -> None:
        """Write it down."""
        self.closed = True


class FakeSuspension:
    """A suspension whose execution a test lets go on: `go_on` is what `resume` got."""

    is_last = True

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.go_on: Callable[[], None] | None = None

    def resume(self, go_on: Callable[[], None]) -> None:
        """Remember what lets the execution go on."""
        self.go_on = go_on


class FakeGates:
    """A factory of gates, which is its own plugin: pass it to `Server(plugins=[...])`. Every version gets a FakeGate.

    `gates` are those so far, by model; `open` is that of new ones; `families` are its metrics, `failure` is raised by
    `admit` and `metrics`.
    """

    def __init__(self, open_: int = 1) -> None:
        self.open = open_
        self.gates: dict[str, FakeGate] = {}
        self.families: list[MetricFamily] = []
        self.failure: BaseException | None = None
        self.settings: Settings | None = None

    @hookimpl
    def naiad_gates(self, settings: "Settings") -> Sequence[GateFactory]:
        """The factory itself."""
        self.settings = settings
        return [self]

    def admit(self, config: ModelConfig, placements: Sequence[Placement]) -> FakeGate:
        """A new gate, or `failure`."""
        if self.failure is not None:
            raise self.failure
        self.gates[config.name] = FakeGate(self.open)
        return self.gates[config.name]

    def metrics(self) -> Sequence[MetricFamily]:
        """Its `families`, or `failure`."""
        if self.failure is not None:
            raise self.failure
        return self.families


def check_gates(make: Callable[[], GateFactory], placements: Sequence[Placement], histories: int = 25) -> None:
    """Play random histories of two model versions with these instances, whose executions `make()` limits.

    Raises ContractBroken for a grant that was not wanted or comes at the wrong time, for a slot or a suspended
    execution that waits although no other executes, and for metrics that change their names.
    """
    for seed in range(histories):
        factory = make()
        names = _names_of(factory)
        versions = [_CheckedVersion(factory, name, placements) for name in ("one", "other")]
        chance = random.Random(seed)  # noqa: S311 - a history, not a secret
        for _ in range(100):
            chance.choice(versions).step(chance)
        _require_an_end(versions)
        for version in versions:
            version.close()
        if names != _names_of(factory):
            raise ContractBroken(f"the names of its metrics were {names} and have changed")


def _names_of(factory: GateFactory) -> list[str]:
    """The names of the metrics of a factory that has some."""
    return [family.name for family in factory.metrics()] if isinstance(factory, MetricSource) else []


def _require_an_end(versions: "Sequence[_CheckedVersion]") -> None:
    """Let executions end, and grant again, until no slot waits any more."""
    for _ in range(sum(len(version.states) for version in versions) + 1):
        for version in versions:
            version.end_executions()
        if all(version.is_idle() for version in versions):
            return
    raise ContractBroken("a slot waits for ever: nothing executes, and it is not granted")


class _CheckedVersion:
    """One model version. `states` of its slots: idle, wants, executes, suspended or resumes."""

    def __init__(self, factory: GateFactory, name: str, placements: Sequence[Placement]) -> None:
        gate = factory.admit(ModelConfig(name=name), placements)
        if gate is None:
            raise ContractBroken("it gives no gate to these instances, so there is nothing to check")
        self._gate: ExecutionGate = gate
        self._gate.enter(placements)
        self.states = ["idle"] * len(placements)
        self._suspensions: dict[int, Suspension] = {}
        self._noting = False

    def step(self, chance: random.Random) -> None:
        """Something that may happen to one of the slots."""
        slot = chance.randrange(len(self.states))
        match self.states[slot]:
            case "idle":
                self._want(slot)
            case "wants":
                self._release(slot) if chance.random() < 0.2 else self._want(slot)
            case "executes":
                self._suspend(slot) if chance.random() < 0.4 else self._release(slot)
            case "suspended":
                self._release(slot) if chance.random() < 0.2 else self._resume(slot)
            case "resumes":
                self._release(slot) if chance.random() < 0.2 else None
        if chance.random() < 0.8:
            self._gate.grant()

    def end_executions(self) -> None:
        """End what executes, resume what is suspended, and grant."""
        for slot, state in enumerate(self.states):
            if state == "executes":
                self._release(slot)
            elif state == "suspended":
                self._resume(slot)
        self._gate.grant()

    def is_idle(self) -> bool:
        """Whether no slot does anything or waits."""
        return all(state == "idle" for state in self.states)

    def close(self) -> None:
        """Close the gate, twice, while an execution is suspended."""
        self._want(0)
        self._gate.grant()
        self._suspend(0)
        self._gate.close()
        self._gate.close()
        self._resume(0)
        if self.states[0] != "executes":
            raise ContractBroken("an execution is still suspended after the gate of its version was closed")

    def _want(self, slot: int) -> None:
        self.states[slot] = "wants"
        self._note(lambda: self._gate.want(slot, self._granted))

    def _release(self, slot: int) -> None:
        resumes = self.states[slot] == "resumes"
        self._note(lambda: self._gate.release(slot))
        if resumes and self.states[slot] != "executes":
            raise ContractBroken(f"what was suspended at slot {slot} never hears that the slot was released")
        suspension = self._suspensions.pop(slot, None)
        self.states[slot] = "idle"
        if suspension is not None:
            went_on: list[int] = []
            suspension.resume(lambda: went_on.append(slot))
            if not went_on:
                raise ContractBroken(f"a suspension of slot {slot} does not end although its execution has returned")

    def _suspend(self, slot: int) -> None:
        self.states[slot] = "suspended"
        self._suspensions[slot] = self._gate.suspend(slot)
        if not self._suspensions[slot].is_last:
            raise ContractBroken(f"the only suspension of slot {slot} says that it is not the last")

    def _resume(self, slot: int) -> None:
        self.states[slot] = "resumes"
        self._suspensions.pop(slot).resume(lambda: self._go_on(slot))

    def _granted(self, slot: int) -> None:
        if self._noting:
            raise ContractBroken(f"slot {slot} is granted inside of want, started or release, and not by grant")
        if self.states[slot] != "wants":
            raise ContractBroken(f"slot {slot} is granted, although its state is '{self.states[slot]}'")
        self.states[slot] = "executes"
        self._note(lambda: self._gate.started(slot))

    def _go_on(self, slot: int) -> None:
        if self.states[slot] != "resumes":
            raise ContractBroken(f"the execution at slot {slot} goes on, although its state is '{self.states[slot]}'")
        self.states[slot] = "executes"

    def _note(self, say: Callable[[], None]) -> None:
        """Say something that grants nothing."""
        before, self._noting = self._noting, True
        try:
            say()
        finally:
            self._noting = before

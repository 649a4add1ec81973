"""The published check of execution gates: one that keeps the contract passes, and each way to break it is found."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from naiad.backend import Placement
from naiad.extend import Suspension
from naiad_config import ModelConfig, ModelInstanceGroup
from naiad_kit.metrics import MetricFamily
from naiad_testing.gates import ContractBroken, check_gates

INSTANCES = [Placement(f"m_{index}", "CPU", 0, ModelInstanceGroup()) for index in range(2)]


class OneAtATime:
    """Lets one slot of all versions execute at a time; the first that waits is the next."""

    def __init__(self) -> None:
        self.holder: object = None
        self.queue: list[tuple[object, Callable[[], None]]] = []

    def admit(self, config: ModelConfig, placements: Sequence[Placement]) -> "Gate":
        return Gate(self)

    def metrics(self) -> Sequence[MetricFamily]:
        return []

    def let_go(self) -> None:
        while self.queue and self.holder is None:
            self.holder, go = self.queue.pop(0)
            go()


class Gate:
    def __init__(self, factory: OneAtATime) -> None:
        self.factory = factory
        self.suspended: dict[int, Callable[[], None] | None] = {}
        self.closed = False

    def enter(self, placements: Sequence[Placement]) -> None:
        pass

    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        key = (self, slot)
        if key != self.factory.holder and key not in [each for each, _ in self.factory.queue]:
            self.factory.queue.append((key, lambda: granted(slot)))

    def started(self, slot: int) -> None:
        pass

    def release(self, slot: int) -> None:
        self.factory.queue = [each for each in self.factory.queue if each[0] != (self, slot)]
        if self.factory.holder == (self, slot):
            self.factory.holder = None
        self.end_suspension(slot)

    def grant(self) -> None:
        self.factory.let_go()

    def suspend(self, slot: int) -> Suspension:
        if self.factory.holder == (self, slot):
            self.factory.holder = None
        self.suspended[slot] = None
        return OneWait(self, slot)

    def close(self) -> None:
        self.closed = True

    def end_suspension(self, slot: int) -> None:
        go_on = self.suspended.pop(slot, None)
        if go_on is not None:
            go_on()


class OneWait:
    is_last = True

    def __init__(self, gate: Gate, slot: int) -> None:
        self.gate, self.slot = gate, slot

    def resume(self, go_on: Callable[[], None]) -> None:
        gate, slot = self.gate, self.slot
        if gate.closed or slot not in gate.suspended:
            go_on()
            return
        gate.suspended[slot] = go_on
        gate.factory.queue.insert(0, ((gate, slot), lambda: gate.end_suspension(slot)))
        gate.factory.let_go()


def factory_of(gate: type[Gate]) -> Any:
    class Factory(OneAtATime):
        def admit(self, config: ModelConfig, placements: Sequence[Placement]) -> Gate:
            return gate(self)

    return Factory


class GrantsAtOnce(Gate):
    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        super().want(slot, granted)
        self.factory.let_go()


class ForgetsToGrant(Gate):
    def grant(self) -> None:
        pass


class GrantsWhatWasReleased(Gate):
    def release(self, slot: int) -> None:
        self.end_suspension(slot)
        if self.factory.holder == (self, slot):
            self.factory.holder = None


class KeepsTheSuspended(Gate):
    def release(self, slot: int) -> None:
        suspended = dict(self.suspended)
        self.suspended.clear()
        super().release(slot)
        self.suspended = suspended


class SuspendsAfterTheEnd(Gate):
    def close(self) -> None:
        self.factory.holder = self


def test_gates_that_keep_the_contract_pass() -> None:
    check_gates(OneAtATime, INSTANCES)


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        (GrantsAtOnce, "granted inside of want, started or release"),
        (ForgetsToGrant, "waits for ever"),
        (GrantsWhatWasReleased, "granted, although its state is 'idle'"),
        (KeepsTheSuspended, "never hears that the slot was released|does not end although"),
        (SuspendsAfterTheEnd, "still suspended after the gate of its version was closed"),
    ],
)
def test_gates_that_break_the_contract_are_found(gate: type[Gate], reason: str) -> None:
    with pytest.raises(ContractBroken, match=reason):
        check_gates(factory_of(gate), INSTANCES)


def test_metrics_that_change_their_names_are_found() -> None:
    class Changing(OneAtATime):
        calls = 0

        def metrics(self) -> Sequence[MetricFamily]:
            self.calls += 1
            return [MetricFamily(f"family_{self.calls}", "One", "gauge", [])]

    with pytest.raises(ContractBroken, match=r"the names of its metrics were \['family_1'\] and have changed"):
        check_gates(Changing, INSTANCES)

"""A queue behind a gate: which slots its scheduler sees as idle, and what the gate hears of them."""

from collections.abc import Sequence
from typing import Any

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.scheduler import Decision
from naiad.types import Response
from naiad_testing.gates import FakeGate

from .driven import DrivenQueue


class Unwilling(FifoScheduler):
    """Takes none of the slots that are idle."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, ...]] = []

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.seen.append(tuple(idle))
        return Decision()


async def test_a_slot_executes_when_the_gate_grants_it() -> None:
    gate = FakeGate()
    driven = DrivenQueue(slots=2, gate=gate)
    driven.submit("a")
    before = await driven.executing()

    gate.open = 1
    gate.grant()

    assert before == []
    assert await driven.executing() == [["a"]]
    assert gate.executions == [0]


async def test_no_slot_asks_while_no_request_waits() -> None:
    gate = FakeGate(open_=2)
    driven = DrivenQueue(slots=2, gate=gate)
    idle = dict(gate.wanting)
    driven.submit("a")
    await driven.executing()

    assert idle == {}
    assert (gate.wanting, gate.holding) == ({}, {0})


async def test_a_grant_that_the_scheduler_does_not_use_goes_back_and_counts_for_nothing() -> None:
    gate, scheduler = FakeGate(open_=1), Unwilling()
    driven = DrivenQueue(lambda: scheduler, gate=gate)
    driven.submit("a")
    await driven.executing()

    assert scheduler.seen == [(0,)]
    assert (gate.holding, gate.executions) == (set(), [])


async def test_a_slot_that_becomes_free_gives_its_grant_back_before_it_asks_again() -> None:
    gate = FakeGate(open_=1)
    driven = DrivenQueue(gate=gate)
    driven.submit("a")
    driven.submit("b")
    await driven.executing()

    driven.finish()

    assert await driven.executing() == [["b"]]
    assert gate.executions == [0, 0]


async def test_a_request_that_is_taken_back_withdraws_what_its_slots_asked_for() -> None:
    gate = FakeGate()
    driven = DrivenQueue(slots=2, gate=gate)
    call = driven.submit("a")
    await driven.executing()
    asking = set(gate.wanting)

    call.cancel()

    assert (asking, gate.wanting) == ({0, 1}, {})


async def test_a_lost_slot_holds_nothing_until_it_is_free_again() -> None:
    gate = FakeGate(open_=1)
    driven = DrivenQueue(gate=gate)
    driven.submit("a")
    await driven.executing()

    driven.queue.lose(0)
    driven.submit("b")
    await driven.executing()
    lost = set(gate.holding), dict(gate.wanting)
    driven.queue.free(0)
    await driven.executing()

    assert lost == (set(), {})
    assert gate.holding == {0}


async def test_an_execution_is_suspended_and_what_has_returned_is_not() -> None:
    gate = FakeGate(open_=1)
    driven = DrivenQueue(gate=gate)
    driven.submit("a")
    await driven.executing()

    during = driven.queue.suspend(0)
    driven.finish()
    after = driven.queue.suspend(0)

    assert during is gate.suspended[0]
    assert after is None


async def test_a_queue_without_a_gate_suspends_nothing() -> None:
    driven = DrivenQueue()
    driven.submit("a")
    await driven.executing()

    assert driven.queue.suspend(0) is None


# Gates that raise


class Broken(FakeGate):
    """Has one slot to grant, and raises in one method from `breaks` on."""

    breaks = False

    def __init__(self, method: str) -> None:
        super().__init__(open_=1)
        self._method = method

    def __getattribute__(self, name: str) -> Any:
        if super().__getattribute__("breaks") and name == super().__getattribute__("_method"):
            return self._fail
        return super().__getattribute__(name)

    def _fail(self, *arguments: object) -> None:
        raise SystemExit(f"no {self._method}")


@pytest.mark.parametrize("method", ["want", "grant"])
async def test_a_gate_that_raises_fails_the_requests_that_wait_for_it(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Broken(method)
    driven = DrivenQueue(gate=gate)
    gate.breaks = True

    driven.submit("a")
    await driven.executing()

    (error,) = driven.outcomes["a"]
    assert str(error) == "the execution gate of model 'm' failed; the log says why"
    assert "the execution gate of model 'm' failed" in caplog.text
    assert f"no {method}" in caplog.text


@pytest.mark.parametrize("method", ["started", "release"])
async def test_a_gate_that_raises_keeps_no_answer_back(method: str, caplog: pytest.LogCaptureFixture) -> None:
    gate = Broken(method)
    driven = DrivenQueue(gate=gate)
    gate.breaks = True

    driven.submit("a")
    executing = await driven.executing()
    driven.finish()

    assert executing == [["a"]]
    assert [each.id for each in driven.outcomes["a"] if isinstance(each, Response)] == ["a"]
    assert f"no {method}" in caplog.text

"""Requests that come one at a time: decided on while they are submitted, and answered not before that is over."""

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.errors import InternalError
from naiad.scheduler import Decision, Drop, DropReason
from naiad_testing.loops import turns

from .driven import DrivenQueue


async def lonely(make_scheduler: type[FifoScheduler] = FifoScheduler) -> DrivenQueue:
    """A queue whose requests came one at a time so far."""
    driven = DrivenQueue(make_scheduler)
    for number in range(64):
        driven.submit(f"before {number}")
        await turns()
        driven.finish()
    return driven


async def test_a_request_that_comes_alone_executes_before_its_round_ends() -> None:
    driven = await lonely()

    driven.submit("alone")
    driven.submit("behind it")

    assert [[each.id for each in execution.batch.requests] for execution in driven.sent] == [["alone"]]
    driven.finish()
    assert await driven.executing() == [["behind it"]]


async def test_one_of_the_first_requests_waits_for_its_round() -> None:
    driven = DrivenQueue()

    driven.submit("first")

    assert driven.sent == []
    assert await driven.executing() == [["first"]]


class Fails(FifoScheduler):
    """Raises when it is asked about the last request."""

    def decide(self, now: float, idle: object) -> Decision:
        if self.fails:
            raise ValueError("no decision")
        return super().decide(now, idle)  # type: ignore[arg-type]

    fails = False


async def test_a_scheduler_that_fails_meanwhile_fails_the_request_after_it_was_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driven = await lonely(Fails)
    monkeypatch.setattr(Fails, "fails", True)

    driven.submit("alone")

    assert driven.outcomes["alone"] == []
    await turns()
    assert isinstance(driven.error("alone"), InternalError)
    assert await driven.is_drained()


class Drops(FifoScheduler):
    """Gives a request up as soon as it is asked about it."""

    gives_up = False

    def decide(self, now: float, idle: object) -> Decision:
        if not self.gives_up:
            return super().decide(now, idle)  # type: ignore[arg-type]
        tickets = tuple(self._waiting)
        self._waiting.clear()
        return Decision(drops=(Drop(tickets, DropReason.TIMEOUT),))


async def test_a_request_that_is_dropped_meanwhile_has_its_error_after_it_was_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driven = await lonely(Drops)
    monkeypatch.setattr(Drops, "gives_up", True)

    driven.submit("alone")

    assert driven.outcomes["alone"] == []
    await turns()
    assert driven.error("alone")
    assert await driven.is_drained()

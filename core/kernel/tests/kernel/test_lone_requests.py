"""Requests that come one at a time: decided on while they are submitted, and answered not before that is over."""

import signal
import sys
from collections.abc import Sequence

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.errors import InternalError
from naiad.scheduler import Decision, Dispatch, Drop, DropReason
from naiad.types import Request
from naiad_testing.loops import turns, until

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


class Interrupted(FifoScheduler):
    """Is interrupted the first time that it is asked about the last request."""

    interrupts = False

    def decide(self, now: float, idle: object) -> Decision:
        if self.interrupts:
            type(self).interrupts = False
            raise KeyboardInterrupt
        return super().decide(now, idle)  # type: ignore[arg-type]


async def test_a_request_whose_submission_was_interrupted_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = await lonely(Interrupted)
    monkeypatch.setattr(Interrupted, "interrupts", True)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        with pytest.raises(KeyboardInterrupt):
            driven.submit("alone")
    finally:
        signal.signal(signal.SIGINT, before)
    driven.submit("behind it")
    assert await driven.executing() == [["alone"]]
    driven.finish()
    await turns(20)

    assert len(driven.outcomes["alone"]) == 1
    assert await driven.executing() == [["behind it"]]


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


async def test_a_request_that_is_taken_back_after_it_was_dropped_meanwhile_has_no_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driven = await lonely(Drops)
    monkeypatch.setattr(Drops, "gives_up", True)

    driven.submit("alone").cancel()

    await turns()
    assert driven.outcomes["alone"] == []


async def test_a_caller_that_fails_when_it_has_its_error_does_not_end_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    driven = await lonely(Drops)
    monkeypatch.setattr(Drops, "gives_up", True)

    driven.queue.submit(Request("m", {}), 1, None, lambda _: sys.exit())

    await turns()
    assert "delivering a response of model 'm' failed" in caplog.text


class Delays(FifoScheduler):
    """Lets each request wait for a moment, and gives up the first one then."""

    delays = False
    first = 0

    def decide(self, now: float, idle: object) -> Decision:
        if not self.delays or not self._waiting:
            return super().decide(now, idle)  # type: ignore[arg-type]
        oldest = next(iter(self._waiting))
        if not self._waiting[oldest]:
            self._waiting[oldest] = now + 0.001  # type: ignore[assignment]
            self.first = self.first or oldest
        if now < self._waiting[oldest]:  # type: ignore[operator]
            return Decision(wake_at=self._waiting[oldest])
        if oldest != self.first:
            return super().decide(now, idle)  # type: ignore[arg-type]
        del self._waiting[oldest]
        return Decision(drops=(Drop((oldest,), DropReason.TIMEOUT),))


async def test_a_request_that_is_submitted_when_another_is_dropped_keeps_its_alarm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driven = await lonely(Delays)
    monkeypatch.setattr(Delays, "delays", True)

    driven.queue.submit(Request("m", {}), 1, None, lambda _: driven.submit("again") and None)

    await until(lambda: bool(driven.sent))
    assert await driven.executing() == [["again"]]


class Joins(FifoScheduler):
    """Joins all that waits."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        tickets = tuple(self._waiting) if idle else ()
        if not tickets:
            return Decision()
        self._waiting.clear()
        return Decision((Dispatch(idle[0], tickets, "full"),))


async def test_two_requests_that_come_together_after_many_alone_are_joined_from_then_on() -> None:
    driven = await lonely(Joins)

    batches = []
    for pair in range(3):
        driven.submit(f"one {pair}")
        driven.submit(f"other {pair}")
        while executing := await driven.executing():
            batches.append(len(executing[0]))
            driven.finish()

    assert batches == [1, 1, 2, 2]

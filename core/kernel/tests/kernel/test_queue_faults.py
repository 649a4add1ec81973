"""Faults within a queue: each request still ends, each slot comes back, and nothing grows or is shared."""

from collections.abc import Sequence
from typing import Any

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.errors import InternalError, NaiadError, UnavailableError
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason
from naiad.types import Response
from naiad_statistics.executions import MOST_REASONS, OTHER_REASON
from naiad_testing.loops import turns
from naiad_testing.scheduling import AllAtOnce

from .driven import DrivenQueue
from .schedulers import Strict


async def batch_of_three() -> DrivenQueue:
    driven = DrivenQueue(AllAtOnce)
    for name in ("a", "b", "c"):
        driven.submit(name)
    await turns()
    return driven


async def test_an_answer_that_cannot_be_delivered_fails_the_rest_of_its_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driven = await batch_of_three()
    work = driven.sent.pop()
    work.outcomes = [Response("m", 1, "a", {})]  # a reader that loses outcomes would be a fault of ours

    driven.queue.done(work)

    assert driven.answered() == {"a"}
    for name in ("b", "c"):
        assert isinstance(driven.error(name), InternalError)
        assert "model 'm' executed the request, and its answer was lost: ValueError" in str(driven.error(name))
    assert "answering a batch of model 'm' failed" in caplog.text
    driven.submit("next")
    assert await driven.executing() == [["next"]]
    assert not await driven.is_drained()


async def test_counters_that_raise_keep_neither_the_slot_nor_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = await batch_of_three()

    with monkeypatch.context() as broken:
        broken.setattr(driven.counters, "by_slot", [])
        driven.finish()

    assert driven.answered() == {"a", "b", "c"}
    driven.submit("next")
    assert await driven.executing() == [["next"]]


async def test_each_request_of_a_failed_batch_has_an_error_of_its_own() -> None:
    driven = await batch_of_three()
    cause = ValueError("the reason")

    try:
        raise UnavailableError("try again", retry_after=2.5) from cause
    except UnavailableError as error:
        driven.fail(error)

    errors = [driven.error(name) for name in ("a", "b", "c")]
    assert len({id(error) for error in errors}) == 3
    for error in errors:
        assert isinstance(error, UnavailableError)
        assert (str(error), error.retry_after, error.__cause__, error.__traceback__) == ("try again", 2.5, cause, None)


async def test_requests_that_fail_together_have_errors_of_their_own() -> None:
    driven = DrivenQueue()
    for name in ("executing", "a", "b", "c"):
        driven.submit(name)
        await turns()

    driven.queue.fail_all(UnavailableError("gone", retry_after=1.0))

    errors = [driven.error(name) for name in ("a", "b", "c")]
    assert len({id(error) for error in errors}) == 3
    assert {str(error) for error in errors} == {"gone"}


async def test_requests_that_a_scheduler_drops_or_loses_have_errors_of_their_own() -> None:
    strict = Strict()
    driven = DrivenQueue(lambda: strict)
    for name in ("executing", "a", "b", "c", "d"):
        driven.submit(name)
        await turns()

    strict.drops = (Drop((2, 3), DropReason.TIMEOUT),)
    driven.queue._decide()
    driven.queue._scheduler_failed(ValueError("broken"))

    errors = [driven.error(name) for name in ("a", "b", "c", "d")]
    assert len({id(error) for error in errors}) == 4


async def test_an_error_that_cannot_be_copied_is_shared() -> None:
    class Stubborn(NaiadError):
        count = 0

        def __new__(cls, *arguments: object) -> "Stubborn":
            cls.count += 1
            if cls.count > 1:
                raise TypeError("one of a kind")
            return super().__new__(cls, *arguments)

    driven = await batch_of_three()

    driven.fail(Stubborn("no"))

    assert [str(driven.error(name)) for name in ("a", "b", "c")] == ["no"] * 3


class Talkative(FifoScheduler):
    """Gives each batch a reason of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.reason: Any = None
        self.seen: list[Sequence[int]] = []

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.seen.append(idle)
        if not idle or not self._waiting:
            return NOTHING
        ticket = self._oldest()
        return Decision((Dispatch(idle[0], (ticket,), f"ticket {ticket}" if self.reason is None else self.reason),))


async def test_reasons_that_are_all_different_are_counted_together() -> None:
    driven = DrivenQueue(Talkative)

    for number in range(3 * MOST_REASONS):
        driven.submit(str(number))
        await turns()
        driven.finish()

    counted = driven.statistics.batch_reasons
    assert len(counted) == MOST_REASONS + 1
    assert counted[OTHER_REASON] == 2 * MOST_REASONS


async def test_a_reason_that_cannot_be_counted_costs_no_slot() -> None:
    scheduler = Talkative()
    scheduler.reason = ["not hashable"]
    driven = DrivenQueue(lambda: scheduler)
    driven.submit("fails")
    await turns()

    assert isinstance(driven.error("fails"), InternalError)
    scheduler.reason = "sound"
    driven.submit("next")
    assert await driven.executing() == [["next"]]


async def test_a_scheduler_gets_the_idle_instances_as_they_are_at_the_moment() -> None:
    scheduler = Talkative()
    driven = DrivenQueue(lambda: scheduler, slots=2)
    driven.submit("a")
    await turns()

    assert scheduler.seen == [(0, 1)]


class RemembersNothing(FifoScheduler):
    """Says that it need not know which instances have died."""

    lost = None


async def test_a_scheduler_may_say_that_it_need_not_know_of_deaths() -> None:
    driven = DrivenQueue(RemembersNothing)
    driven.submit("before")
    await turns()

    driven.die(InternalError("it died"))
    driven.queue.free(0)
    driven.submit("after")

    assert await driven.executing() == [["after"]]

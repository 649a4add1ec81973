"""Ends of calls other than an answer: taken back, too late, refused, dropped, lost with a worker, shut down."""

import pytest

from naiad.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NaiadError,
    QueueFullError,
    QueueTimeoutError,
    ShuttingDownError,
    WorkerDiedError,
)
from naiad.scheduler import Drop, DropReason
from naiad_testing.loops import jump, turns
from naiad_testing.scheduling import Ordered

from .driven import DrivenQueue
from .schedulers import Strict


async def test_a_call_taken_back_while_it_waits_never_executes() -> None:
    driven = DrivenQueue()
    driven.submit("a")
    waiting = driven.submit("b")
    await turns()

    waiting.cancel()
    waiting.cancel()
    driven.finish()

    assert await driven.executing() == []
    assert driven.outcomes["b"] == []
    assert driven.statistics.fail.count == 1
    assert await driven.is_drained()


async def test_a_call_taken_back_while_it_executes_gets_nothing() -> None:
    driven = DrivenQueue()
    executing = driven.submit("a")
    await turns()

    executing.cancel()
    assert not await driven.is_drained()
    driven.finish()

    assert driven.outcomes["a"] == []
    assert (driven.statistics.fail.count, driven.statistics.success.count) == (1, 0)
    assert await driven.is_drained()


async def test_taking_back_an_answered_call_changes_nothing() -> None:
    driven = DrivenQueue()
    call = driven.submit("a")
    await turns()
    driven.finish()

    call.cancel()

    assert driven.answered() == {"a"}
    assert (driven.statistics.fail.count, driven.statistics.success.count) == (0, 1)


async def test_a_call_taken_back_before_the_first_decision_never_executes() -> None:
    driven = DrivenQueue()

    driven.submit("a").cancel()

    assert await driven.executing() == []


async def test_a_request_that_waits_past_its_deadline_is_reported_and_never_executes() -> None:
    driven = DrivenQueue()
    driven.submit("a")
    driven.submit("b", seconds=5.0)
    await turns()

    await jump(5.1)

    assert isinstance(driven.error("b"), DeadlineExceededError)
    assert "was still waiting after" in str(driven.error("b"))
    driven.finish()
    assert await driven.executing() == []


async def test_a_request_that_executes_past_its_deadline_is_reported_while_the_model_hangs() -> None:
    driven = DrivenQueue(slots=2)
    driven.submit("a", seconds=5.0)
    await turns()

    await jump(5.1)

    assert isinstance(driven.error("a"), DeadlineExceededError)
    assert "was still executing after" in str(driven.error("a"))
    assert not await driven.is_drained()
    driven.submit("b")
    assert await driven.executing() == [["a"], ["b"]]


async def test_the_late_answer_of_a_hanging_model_is_dropped() -> None:
    driven = DrivenQueue()
    driven.submit("a", seconds=5.0)
    await turns()
    await jump(5.1)

    driven.finish()

    assert len(driven.outcomes["a"]) == 1
    assert (driven.statistics.fail.count, driven.statistics.success.count) == (1, 0)
    assert await driven.is_drained()


async def test_a_request_answered_in_time_is_not_troubled_by_its_deadline() -> None:
    driven = DrivenQueue()
    driven.submit("a", seconds=5.0)
    await turns()
    driven.finish()

    await jump(5.1)

    assert driven.answered() == {"a"}
    assert len(driven.outcomes["a"]) == 1


async def test_a_deadline_that_has_passed_is_refused_at_once() -> None:
    driven = DrivenQueue()

    with pytest.raises(DeadlineExceededError, match="arrived after its deadline"):
        driven.submit("a", seconds=-1.0)

    assert driven.statistics.fail.count == 1
    assert await driven.is_drained()


async def test_a_full_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    scheduler = Strict()
    driven = DrivenQueue(lambda: scheduler)
    scheduler.refuse = Drop((1,), DropReason.QUEUE_FULL, "it holds 4")

    with pytest.raises(QueueFullError, match="Exceeds maximum queue size of model 'm': it holds 4") as caught:
        driven.submit("a")

    assert caught.value.retry_after == 1.0
    assert driven.statistics.fail.count == 1
    assert driven.queue.outstanding == 0


@pytest.mark.parametrize(
    ("reason", "kind", "message"),
    [
        (DropReason.TIMEOUT, QueueTimeoutError, "Request timeout expired for model 'm'"),
        (DropReason.QUEUE_FULL, QueueFullError, "Exceeds maximum queue size of model 'm'"),
        (DropReason.INVALID, InvalidArgumentError, "the scheduler of model 'm' refused the request"),
    ],
)
async def test_a_dropped_request_is_reported_why(reason: DropReason, kind: type[NaiadError], message: str) -> None:
    scheduler = Strict()
    driven = DrivenQueue(lambda: scheduler)
    driven.submit("a")
    driven.submit("b")
    await turns()

    scheduler.drops = (Drop((2,), reason),)
    driven.submit("c")
    await turns()

    assert type(driven.error("b")) is kind
    assert str(driven.error("b")).startswith(message)
    assert 2 not in scheduler.settled
    driven.finish()
    assert await driven.executing() == [["c"]]


async def test_a_request_that_failed_in_its_model_knows_its_times_and_its_batch() -> None:
    driven = DrivenQueue()
    call = driven.submit("a")
    await turns()

    driven.finish(errors={"a": InternalError("no")}, at_ms=(5, 6, 9, 11))

    assert str(driven.error("a")) == "no"
    assert call.queue_ns == 5_000_000
    assert call.phases == (1_000_000, 3_000_000, 2_000_000)
    assert call.joined == (1, "single")


async def test_a_request_that_failed_before_it_executed_knows_how_long_it_waited() -> None:
    driven = DrivenQueue()
    executing = driven.submit("a")
    waiting = driven.submit("b", seconds=0.01)
    await turns()

    await jump(0.02)
    await turns()

    assert type(driven.error("b")) is DeadlineExceededError
    assert waiting.queue_ns > 0
    assert waiting.phases == (0, 0, 0)
    assert executing.queue_ns == 0


async def test_a_batch_lost_with_its_worker_fails_and_the_rest_waits_for_a_slot() -> None:
    driven = DrivenQueue()
    driven.submit("a")
    driven.submit("b")
    await turns()

    driven.die(WorkerDiedError("gone"))
    assert str(driven.error("a")) == "gone"
    assert await driven.executing() == []

    driven.queue.free(0)
    assert await driven.executing() == [["b"]]


async def test_an_idle_slot_can_be_lost_too() -> None:
    driven = DrivenQueue(slots=2)
    driven.queue.lose(0)
    driven.submit("a")

    await turns()

    assert [execution.slot for execution in driven.sent] == [1]


async def test_everything_that_waits_can_be_failed_while_what_executes_goes_on() -> None:
    driven = DrivenQueue()
    for name in "abc":
        driven.submit(name)
    await turns()

    driven.queue.fail_all(ShuttingDownError("stop"))

    assert {str(driven.error(name)) for name in "bc"} == {"stop"}
    driven.finish()
    assert driven.answered() == {"a"}


async def test_what_executes_can_be_failed_too_and_its_late_answer_is_dropped() -> None:
    driven = DrivenQueue(Ordered)
    driven.submit("a")
    driven.submit("b")
    await turns()

    driven.queue.fail_all(ShuttingDownError("stop"), executing=True)

    assert {str(driven.error(name)) for name in "ab"} == {"stop"}
    driven.finish()
    assert len(driven.outcomes["a"]) == 1


async def test_an_empty_queue_is_drained_at_once() -> None:
    assert await DrivenQueue().is_drained()

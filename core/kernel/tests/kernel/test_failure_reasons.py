"""Why a request failed, as metrics tell it."""

from naiad.errors import InternalError, NaiadError
from naiad.scheduler import Drop, DropReason
from naiad_statistics.versions import FailureReason
from naiad_testing.loops import jump, turns
from naiad_testing.scheduling import AllAtOnce

from .driven import DrivenQueue
from .schedulers import Strict


def reasons(driven: DrivenQueue) -> dict[str, int]:
    return {reason.value: count for reason, count in driven.counters.failures.items() if count}


def refused(driven: DrivenQueue, **more: float) -> bool:
    try:
        driven.submit("refused", **more)
    except NaiadError:
        return True
    return False


def test_every_reason_is_there_from_the_start() -> None:
    driven_reasons = dict.fromkeys(FailureReason, 0)

    assert [reason.value for reason in driven_reasons] == ["REJECTED", "CANCELED", "BACKEND", "OTHER"]


async def test_a_request_that_the_queue_has_no_room_for_is_rejected() -> None:
    scheduler = Strict()
    driven = DrivenQueue(lambda: scheduler)
    scheduler.refuse = Drop((), DropReason.QUEUE_FULL)

    assert refused(driven)

    assert reasons(driven) == {"REJECTED": 1}


async def test_a_request_that_waited_too_long_is_rejected_and_one_that_is_invalid_is_not() -> None:
    scheduler = Strict()
    driven = DrivenQueue(lambda: scheduler, slots=0)
    driven.submit("late")
    driven.submit("senseless")
    await turns()
    scheduler.drops = (Drop((1,), DropReason.TIMEOUT), Drop((2,), DropReason.INVALID))

    driven.submit("asks the scheduler again")
    await turns()

    assert reasons(driven) == {"REJECTED": 1, "OTHER": 1}


async def test_a_deadline_that_passes_before_the_execution_rejects_and_one_in_it_cancels() -> None:
    driven = DrivenQueue()
    assert refused(driven, seconds=-1.0)
    driven.submit("executes", seconds=5.0)
    driven.submit("waits", seconds=5.0)
    await turns()

    await jump(5.1)

    assert reasons(driven) == {"REJECTED": 2, "CANCELED": 1}


async def test_callers_that_leave_are_counted_by_what_their_requests_did() -> None:
    driven = DrivenQueue()
    executes, waits = driven.submit("executes"), driven.submit("waits")
    await turns()

    for call in (executes, waits, waits):
        call.cancel()

    assert reasons(driven) == {"CANCELED": 2}
    assert (driven.counters.cancelled_executing, driven.counters.cancelled_waiting) == (1, 1)


async def test_a_batch_that_fails_and_a_request_that_fails_in_it_are_failures_of_the_backend() -> None:
    driven = DrivenQueue(AllAtOnce)
    driven.submit("a")
    driven.submit("b")
    await turns()
    driven.fail(InternalError("no"))
    driven.submit("c")
    driven.submit("d")
    await turns()

    driven.finish(errors={"d": InternalError("no")})

    assert reasons(driven) == {"BACKEND": 3}


async def test_what_the_server_gives_up_itself_has_another_reason() -> None:
    driven = DrivenQueue(slots=0)
    driven.submit("waits")

    driven.queue.fail_all(InternalError("stopping"))

    assert reasons(driven) == {"OTHER": 1}

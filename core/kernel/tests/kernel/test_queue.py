"""The queue of a model version: calls in, batches out, and answers back, in order where that is asked for."""

import pytest

from naiad.errors import InternalError, InvalidArgumentError
from naiad.types import Response
from naiad_testing.loops import jump, turns
from naiad_testing.scheduling import Ordered

from .driven import DrivenQueue
from .schedulers import Hesitant, Pairs, Recording


async def test_an_idle_slot_takes_a_request_and_its_caller_gets_the_answer() -> None:
    driven = DrivenQueue()
    driven.submit("a")

    assert await driven.executing() == [["a"]]
    driven.finish()

    (outcome,) = driven.outcomes["a"]
    assert isinstance(outcome, Response)
    assert outcome.id == "a"
    assert driven.queue.outstanding == 0


async def test_a_slot_that_becomes_free_pulls_the_next_request_at_once() -> None:
    driven = DrivenQueue()
    for name in "abc":
        driven.submit(name)
    await turns()
    assert (driven.queue.outstanding, driven.queue.waiting) == (3, 2)

    driven.finish()

    assert [[request.id for request in execution.batch.requests] for execution in driven.sent] == [["b"]]


async def test_several_slots_execute_at_once() -> None:
    driven = DrivenQueue(slots=3)
    for name in "abcd":
        driven.submit(name)

    assert await driven.executing() == [["a"], ["b"], ["c"]]
    assert [execution.slot for execution in driven.sent] == [0, 1, 2]


@pytest.mark.parametrize(("lowest_first", "taken"), [(False, [0, 1, 0, 1]), (True, [0, 0, 0, 0])])
async def test_one_request_after_the_other_goes_to_the_longest_idle_or_to_the_lowest_slot(
    lowest_first: bool, taken: list[int]
) -> None:
    driven = DrivenQueue(slots=2, lowest_first=lowest_first)
    slots = []
    for name in "abcd":
        driven.submit(name)
        await driven.executing()
        slots.append(driven.sent[0].slot)
        driven.finish()

    assert slots == taken


async def test_a_batch_holds_the_requests_and_sizes_in_order() -> None:
    driven = DrivenQueue(Pairs)
    driven.submit("a", batch_size=2)
    driven.submit("b", batch_size=3)

    assert await driven.executing() == [["a", "b"]]
    assert (driven.sent[0].batch.sizes, driven.sent[0].batch.size) == ([2, 3], 5)


async def test_many_arrivals_in_one_turn_cost_one_decision() -> None:
    scheduler = Recording()
    driven = DrivenQueue(lambda: scheduler, slots=0)

    for number in range(100):
        driven.submit(str(number))
    await turns()

    assert scheduler.decisions == 1


async def test_tickets_show_the_scheduler_what_it_may_know() -> None:
    scheduler = Recording()
    driven = DrivenQueue(lambda: scheduler)

    driven.submit("a", batch_size=3, timeout=250)
    driven.submit("b")

    first, second = scheduler.tickets
    assert (first.id, second.id) == (1, 2)
    assert (first.batch_size, first.timeout, second.timeout) == (3, 250e-6, 0.0)
    assert first.arrival <= second.arrival


async def test_the_scheduler_hears_of_every_end() -> None:
    scheduler = Recording()
    driven = DrivenQueue(lambda: scheduler)
    driven.submit("a")
    taken_back = driven.submit("b")
    await turns()

    taken_back.cancel()
    driven.finish()

    assert sorted(scheduler.settled) == [1, 2]


async def test_a_scheduler_is_asked_again_when_it_wants_to_be() -> None:
    driven = DrivenQueue(Hesitant)
    driven.submit("a")
    await turns()
    await jump(4.9)
    assert driven.sent == []

    await jump(0.2)

    assert await driven.executing() == [["a"]]


async def test_a_closed_queue_makes_no_more_decisions() -> None:
    scheduler = Hesitant()
    driven = DrivenQueue(lambda: scheduler)
    driven.submit("a")
    await turns()

    driven.queue.close()
    await jump(5.1)

    assert scheduler.decisions == 1


async def test_errors_for_single_requests_reach_their_callers_alone() -> None:
    driven = DrivenQueue(Pairs)
    driven.submit("a")
    driven.submit("b")
    await turns()

    driven.finish(errors={"b": InvalidArgumentError("no")})

    assert driven.answered() == {"a"}
    assert str(driven.error("b")) == "no"


async def test_a_failed_batch_fails_every_request_in_it_and_frees_the_slot() -> None:
    driven = DrivenQueue(Pairs)
    for name in "abcd":
        driven.submit(name)
    await turns()

    driven.fail(InternalError("broken"))

    assert {str(driven.error(name)) for name in "ab"} == {"broken"}
    assert await driven.executing() == [["c", "d"]]


async def test_a_deliver_that_raises_harms_no_other_request(caplog: pytest.LogCaptureFixture) -> None:
    driven = DrivenQueue(Pairs)

    def broken(outcome: object) -> None:
        raise ValueError("the frontend stumbled")

    driven.queue.submit(driven.submit("a").request, 1, None, broken)
    await turns()
    driven.finish()

    assert driven.answered() == {"a"}
    assert await driven.is_drained()
    assert "the frontend stumbled" in caplog.text


async def test_a_caller_may_submit_while_it_is_answered() -> None:
    driven = DrivenQueue()
    first = driven.submit("a")
    await turns()
    first.deliver = lambda outcome: driven.submit("b")  # type: ignore[assignment, return-value]

    driven.finish()

    assert await driven.executing() == [["b"]]


async def test_without_ordering_answers_leave_as_they_come() -> None:
    driven = DrivenQueue(slots=2)
    driven.submit("a")
    driven.submit("b")
    await turns()

    driven.finish(1)

    assert driven.answered() == {"b"}


async def test_with_ordering_an_answer_waits_for_those_of_earlier_requests() -> None:
    driven = DrivenQueue(Ordered, slots=3)
    for name in "abc":
        driven.submit(name)
    await turns()

    driven.finish(2)
    driven.finish(1)
    assert driven.answered() == set()
    driven.finish(0)

    assert driven.answered() == {"a", "b", "c"}
    assert list(driven.outcomes) == ["a", "b", "c"]


@pytest.mark.parametrize("end", ["cancel", "deadline", "failure"])
async def test_with_ordering_an_earlier_request_that_ends_otherwise_lets_the_others_out(end: str) -> None:
    driven = DrivenQueue(Ordered, slots=2)
    first = driven.submit("a", seconds=5.0)
    driven.submit("b")
    await turns()
    driven.finish(1)

    if end == "cancel":
        first.cancel()
    elif end == "deadline":
        await jump(5.1)
    else:
        driven.fail(InternalError("broken"))

    assert driven.answered() == {"b"}


async def test_with_ordering_a_held_back_answer_is_not_delivered_to_who_went_away() -> None:
    driven = DrivenQueue(Ordered, slots=2)
    driven.submit("a")
    second = driven.submit("b")
    await turns()
    driven.finish(1)

    second.cancel()
    driven.finish(0)

    assert driven.answered() == {"a"}
    assert driven.outcomes["b"] == []

"""The queue of a model version: calls in, batches out, every call answered once."""

from collections.abc import Callable, Sequence

import pytest

from naiad.default_scheduler import FifoScheduler
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
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason, Ticket
from naiad.types import Response

from .driven import DrivenQueue
from .loops import jump, turns


class Recording(FifoScheduler):
    """The default scheduler, that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.tickets: list[Ticket] = []
        self.settled: list[int] = []
        self.asked = 0

    def arrive(self, ticket: Ticket) -> Drop | None:
        self.tickets.append(ticket)
        return super().arrive(ticket)

    def settle(self, tickets: Sequence[int], now: float) -> None:
        self.settled += tickets
        super().settle(tickets, now)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.asked += 1
        return super().decide(now, idle)


class Pairs(Recording):
    """Sends two requests at once."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if not idle or len(self._waiting) < 2:
            return NOTHING
        return Decision((Dispatch(idle[0], (self._oldest(), self._oldest()), "pair"),))


class Hesitant(Recording):
    """Sends nothing the first time it is asked, but wants to be asked again in five seconds."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.asked += 1
        return super().decide(now, idle) if self.asked > 1 else Decision(wake_at=now + 5.0)


class Ordered(FifoScheduler):
    preserves_ordering = True


# In and out


async def test_an_idle_place_takes_a_request_and_its_caller_gets_the_answer() -> None:
    driven = DrivenQueue()
    driven.submit("a")

    assert await driven.executing() == [["a"]]
    driven.finish()

    (outcome,) = driven.outcomes["a"]
    assert isinstance(outcome, Response)
    assert outcome.id == "a"
    assert driven.queue.outstanding == 0


async def test_a_place_that_becomes_free_pulls_the_next_request_at_once() -> None:
    driven = DrivenQueue()
    for name in "abc":
        driven.submit(name)
    await turns()
    assert (driven.queue.outstanding, driven.queue.waiting) == (3, 2)

    driven.finish()

    assert [[request.id for request in work.batch.requests] for work in driven.sent] == [["b"]]


async def test_several_places_execute_at_once() -> None:
    driven = DrivenQueue(places=3)
    for name in "abcd":
        driven.submit(name)

    assert await driven.executing() == [["a"], ["b"], ["c"]]
    assert [work.place for work in driven.sent] == [0, 1, 2]


async def test_a_batch_holds_the_requests_and_sizes_in_order() -> None:
    driven = DrivenQueue(Pairs)
    driven.submit("a", batch_size=2)
    driven.submit("b", batch_size=3)

    assert await driven.executing() == [["a", "b"]]
    assert (driven.sent[0].batch.sizes, driven.sent[0].batch.size) == ([2, 3], 5)


async def test_many_arrivals_in_one_turn_cost_one_decision() -> None:
    scheduler = Recording()
    driven = DrivenQueue(lambda: scheduler, places=0)

    for number in range(100):
        driven.submit(str(number))
    await turns()

    assert scheduler.asked == 1


async def test_tickets_tell_the_scheduler_what_it_may_know() -> None:
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


async def test_a_closed_queue_asks_nobody_any_more() -> None:
    scheduler = Hesitant()
    driven = DrivenQueue(lambda: scheduler)
    driven.submit("a")
    await turns()

    driven.queue.close()
    await jump(5.1)

    assert scheduler.asked == 1


async def test_errors_for_single_requests_reach_their_callers_alone() -> None:
    driven = DrivenQueue(Pairs)
    driven.submit("a")
    driven.submit("b")
    await turns()

    driven.finish(errors={"b": InvalidArgumentError("no")})

    assert driven.answered() == {"a"}
    assert str(driven.error("b")) == "no"


async def test_a_failed_batch_fails_every_request_in_it_and_frees_the_place() -> None:
    driven = DrivenQueue(Pairs)
    for name in "abcd":
        driven.submit(name)
    await turns()

    driven.fail(InternalError("broken"))

    assert {str(driven.error(name)) for name in "ab"} == {"broken"}
    assert await driven.executing() == [["c", "d"]]


async def test_a_deliver_that_raises_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
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


# Taking back


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


# Deadlines


async def test_a_request_that_waits_past_its_deadline_is_told_and_never_executes() -> None:
    driven = DrivenQueue()
    driven.submit("a")
    driven.submit("b", seconds=5.0)
    await turns()

    await jump(5.1)

    assert isinstance(driven.error("b"), DeadlineExceededError)
    assert "while it was waiting" in str(driven.error("b"))
    driven.finish()
    assert await driven.executing() == []


async def test_a_request_that_executes_past_its_deadline_is_told_while_the_model_hangs() -> None:
    driven = DrivenQueue(places=2)
    driven.submit("a", seconds=5.0)
    await turns()

    await jump(5.1)

    assert isinstance(driven.error("a"), DeadlineExceededError)
    assert "while it was executing" in str(driven.error("a"))
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

    with pytest.raises(DeadlineExceededError, match="had passed on arrival"):
        driven.submit("a", seconds=-1.0)

    assert driven.statistics.fail.count == 1
    assert await driven.is_drained()


# Refusals and drops


class Strict(Recording):
    """Refuses what waits too long in the queue or finds it full, as the test says."""

    refuse: Drop | None = None
    drops: tuple[Drop, ...] = ()

    def arrive(self, ticket: Ticket) -> Drop | None:
        return self.refuse or super().arrive(ticket)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        drops, self.drops = self.drops, ()
        for drop in drops:
            for ticket in drop.tickets:
                self._waiting.pop(ticket, None)
        return Decision(super().decide(now, idle).dispatches, drops)


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
    ("reason", "kind", "told"),
    [
        (DropReason.TIMEOUT, QueueTimeoutError, "Request timeout expired for model 'm'"),
        (DropReason.QUEUE_FULL, QueueFullError, "Exceeds maximum queue size of model 'm'"),
        (DropReason.INVALID, InvalidArgumentError, "the scheduler of model 'm' refused the request"),
    ],
)
async def test_a_dropped_request_is_told_why(reason: DropReason, kind: type[NaiadError], told: str) -> None:
    scheduler = Strict()
    driven = DrivenQueue(lambda: scheduler)
    driven.submit("a")
    driven.submit("b")
    await turns()

    scheduler.drops = (Drop((2,), reason),)
    driven.submit("c")
    await turns()

    assert type(driven.error("b")) is kind
    assert str(driven.error("b")).startswith(told)
    assert 2 not in scheduler.settled
    driven.finish()
    assert await driven.executing() == [["c"]]


# Ordering


async def test_without_ordering_answers_leave_as_they_come() -> None:
    driven = DrivenQueue(places=2)
    driven.submit("a")
    driven.submit("b")
    await turns()

    driven.finish(1)

    assert driven.answered() == {"b"}


async def test_with_ordering_an_answer_waits_for_those_of_earlier_requests() -> None:
    driven = DrivenQueue(Ordered, places=3)
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
    driven = DrivenQueue(Ordered, places=2)
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
    driven = DrivenQueue(Ordered, places=2)
    driven.submit("a")
    second = driven.submit("b")
    await turns()
    driven.finish(1)

    second.cancel()
    driven.finish(0)

    assert driven.answered() == {"a"}
    assert driven.outcomes["b"] == []


# Lost places and the end


async def test_a_batch_lost_with_its_worker_fails_and_the_rest_waits_for_a_place() -> None:
    driven = DrivenQueue()
    driven.submit("a")
    driven.submit("b")
    await turns()

    driven.die(WorkerDiedError("gone"))
    assert str(driven.error("a")) == "gone"
    assert await driven.executing() == []

    driven.queue.free(0)
    assert await driven.executing() == [["b"]]


async def test_an_idle_place_can_be_lost_too() -> None:
    driven = DrivenQueue(places=2)
    driven.queue.lose(0)
    driven.submit("a")

    await turns()

    assert [work.place for work in driven.sent] == [1]


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


# Schedulers that fail


class Unreliable(Recording):
    """Raises once, where the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.raises_in = ""
        self.decision: Decision | None = None

    def arrive(self, ticket: Ticket) -> Drop | None:
        self._perhaps("arrive")
        return super().arrive(ticket)

    def settle(self, tickets: Sequence[int], now: float) -> None:
        self._perhaps("settle")
        assert set(tickets) <= {ticket.id for ticket in self.tickets}, "settled a ticket that never arrived here"
        super().settle(tickets, now)

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        self.asked += 1
        self._perhaps("decide")
        return self.decision or super().decide(now, idle)

    def _perhaps(self, method: str) -> None:
        if self.raises_in == method:
            raise ArithmeticError(f"{method} is beyond me")


def made_one_by_one() -> tuple[Callable[[], Unreliable], list[Unreliable]]:
    made: list[Unreliable] = []

    def make() -> Unreliable:
        made.append(Unreliable())
        return made[-1]

    return make, made


async def test_a_scheduler_that_fails_on_arrival_fails_what_waits_and_starts_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make)
    driven.submit("executing")
    driven.submit("waiting")
    await turns()
    made[0].raises_in = "arrive"

    with pytest.raises(InternalError, match="the scheduler of model 'm' failed: ArithmeticError: arrive is beyond me"):
        driven.submit("new")

    assert isinstance(driven.error("waiting"), InternalError)
    assert len(made) == 2
    driven.submit("later")
    driven.finish()
    assert await driven.executing() == [["later"]]
    assert driven.answered() == {"executing"}
    assert driven.statistics.fail.count == 2
    assert "ArithmeticError" in caplog.text


async def test_a_scheduler_that_fails_to_decide_fails_what_waits_and_starts_anew() -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make)
    made[0].raises_in = "decide"
    driven.submit("a")
    await turns()

    assert "decide is beyond me" in str(driven.error("a"))
    driven.submit("b")
    assert await driven.executing() == [["b"]]


async def test_a_scheduler_that_fails_to_settle_costs_no_answer_that_is_there() -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make)
    driven.submit("a")
    driven.submit("b")
    await turns()
    made[0].raises_in = "settle"

    driven.finish()

    assert driven.answered() == {"a"}
    assert "settle is beyond me" in str(driven.error("b"))
    assert await driven.is_drained()
    driven.submit("c")
    assert await driven.executing() == [["c"]]


async def test_a_new_scheduler_hears_nothing_of_its_predecessors_tickets() -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make)
    driven.submit("a")
    await turns()
    made[0].raises_in = "arrive"
    with pytest.raises(InternalError):
        driven.submit("b")

    driven.finish()

    assert driven.answered() == {"a"}
    assert len(made) == 2
    assert made[1].settled == []


@pytest.mark.parametrize(
    "dispatch",
    [
        Dispatch(0, (77,), "made up"),
        Dispatch(9, (2,), "no such instance"),
        Dispatch(0, (2, 2), "twice"),
        Dispatch(0, (1,), "executes already"),
        Dispatch(0, (), "nothing"),
        Dispatch(1, (2,), "busy"),
    ],
    ids=lambda dispatch: dispatch.reason,
)
async def test_a_dispatch_that_makes_no_sense_fails_what_waits_and_starts_anew(dispatch: Dispatch) -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make, places=2)
    driven.queue.lose(0)
    driven.submit("a")
    assert await driven.executing() == [["a"]]
    driven.queue.free(0)

    made[0].decision = Decision((dispatch,))
    driven.submit("b")
    await turns()

    assert "every ticket must wait and be named once, and the instance must be idle" in str(driven.error("b"))
    assert len(driven.sent) == 1
    driven.submit("c")
    assert await driven.executing() == [["a"], ["c"]]


@pytest.mark.parametrize("decision", [None, Decision(wake_at="soon")], ids=["nothing", "no time"])  # type: ignore[arg-type]
async def test_an_answer_that_is_no_decision_fails_what_waits_and_starts_anew(decision: Decision | None) -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make)
    made[0].decide = lambda now, idle: decision  # type: ignore[method-assign, assignment, return-value]
    driven.submit("a")
    await turns()

    assert isinstance(driven.error("a"), InternalError)
    driven.submit("b")
    assert await driven.executing() == [["b"]]


async def test_dropping_a_request_that_is_gone_harms_nobody() -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make)
    made[0].decision = Decision(drops=(Drop((77,), DropReason.TIMEOUT),))
    driven.submit("a")
    await turns()

    made[0].decision = None
    driven.submit("b")

    assert await driven.executing() == [["a"]]
    assert len(made) == 1


async def test_when_no_new_scheduler_can_be_made_the_old_one_goes_on() -> None:
    make, made = made_one_by_one()

    def make_one() -> Unreliable:
        if made:
            raise InvalidArgumentError("one is enough")
        return make()

    driven = DrivenQueue(make_one)
    made[0].raises_in = "decide"
    driven.submit("a")
    await turns()
    assert isinstance(driven.error("a"), InternalError)

    made[0].raises_in = ""
    made[0].settle([1], 0.0)
    driven.submit("b")
    assert await driven.executing() == [["b"]]


async def test_a_scheduler_that_waits_for_ever_is_not_asked_in_vain() -> None:
    make, made = made_one_by_one()
    driven = DrivenQueue(make)
    made[0].decision = NOTHING
    driven.submit("a")
    await turns()

    await jump(3600)

    assert made[0].asked == 1
    assert driven.queue.waiting == 1

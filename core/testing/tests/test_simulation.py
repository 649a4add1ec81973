"""The virtual clock: what a scheduler gets, when it is asked, and what the log says."""

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason
from naiad_kit.sequences import Row, SequenceEnd, SequenceEndReason
from naiad_testing.history import Arrival, Crash, Departed, Dropped, Ended, Lost, Sent, SequenceOver, Streamed, Waited
from naiad_testing.simulation import ContractBroken, simulate


class Scripted:
    """Gives the answers it was made with, then the last of them again, and keeps what it was asked."""

    def __init__(self, *answers, refuses=None, wants=None):
        self.answers = list(answers)
        self.refuses = refuses
        self.wants = wants
        self.events = []

    def arrive(self, ticket):
        self.events.append(("arrive", ticket.arrival, ticket.id))
        return self.refuses

    def settle(self, tickets, now):
        self.events.append(("settle", now, tickets))
        return self.wants

    def decide(self, now, idle):
        self.events.append(("decide", now, idle))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_the_default_scheduler_gives_each_instance_one_request_at_a_time():
    log = simulate(FifoScheduler(), [Arrival(0.0), Arrival(0.0), Arrival(1.0)], service_time=2.0, instances=2)

    assert log.entries == (
        Sent(0.0, 0, (1,), "single", 1),
        Sent(0.0, 1, (2,), "single", 1),
        Ended(2.0, 0, (1,)),
        Ended(2.0, 1, (2,)),
        Sent(2.0, 0, (3,), "single", 1),
        Ended(4.0, 0, (3,)),
    )
    assert log.stranded == ()


def test_all_that_happens_at_one_instant_precedes_the_decision():
    scheduler = Scripted(Decision((Dispatch(0, (1,), "go"),)), Decision((Dispatch(0, (2, 3), "go"),)), NOTHING)

    simulate(scheduler, [Arrival(0.0), Arrival(1.0), Arrival(1.0)], service_time=1.0)

    assert scheduler.events == [
        ("arrive", 0.0, 1),
        ("decide", 0.0, (0,)),
        ("settle", 1.0, (1,)),
        ("arrive", 1.0, 2),
        ("arrive", 1.0, 3),
        ("decide", 1.0, (0,)),
        ("settle", 2.0, (2, 3)),
    ]


def test_a_scheduler_is_woken_when_it_asked_to_be():
    scheduler = Scripted(Decision(wake_at=0.25), Decision((Dispatch(0, (1,), "go"),)), NOTHING)

    log = simulate(scheduler, [Arrival(0.0)], service_time=1.0)

    assert log.entries == (Waited(0.0, 0.25), Sent(0.25, 0, (1,), "go", 1), Ended(1.25, 0, (1,)))


def test_a_later_answer_replaces_an_earlier_wait():
    scheduler = Scripted(Decision(wake_at=0.5), Decision(wake_at=2.0), Decision((Dispatch(0, (1, 2), "go"),)), NOTHING)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.25)], service_time=1.0)

    assert [entry.time for entry in log.sent] == [2.0]


def test_the_service_time_may_depend_on_the_size_of_the_batch():
    arrivals = [Arrival(0.0, batch_size=3), Arrival(0.0, batch_size=5)]
    scheduler = Scripted(Decision((Dispatch(0, (1, 2), "go"),)), NOTHING)

    log = simulate(scheduler, arrivals, service_time=lambda size: size / 4)

    assert log.entries == (Sent(0.0, 0, (1, 2), "go", 8), Ended(2.0, 0, (1, 2)))


def test_a_caller_that_leaves_while_it_waits_is_settled_with_the_scheduler():
    log = simulate(FifoScheduler(), [Arrival(0.0), Arrival(0.0, leaves=0.5)], service_time=1.0)

    assert log.departed == (Departed(0.5, 2),)
    assert [entry.tickets for entry in log.sent] == [(1,)]


def test_a_caller_that_leaves_during_the_execution_changes_nothing():
    log = simulate(FifoScheduler(), [Arrival(0.0, leaves=0.5)], service_time=1.0)

    assert log.entries == (Sent(0.0, 0, (1,), "single", 1), Ended(1.0, 0, (1,)))


def test_refusals_are_logged_with_their_reason():
    refusal = Drop((1,), DropReason.QUEUE_FULL, "no room")

    log = simulate(Scripted(NOTHING, refuses=refusal), [Arrival(0.5)], service_time=1.0)

    assert log.dropped == (Dropped(0.5, (1,), DropReason.QUEUE_FULL, "no room"),)


def test_tickets_that_will_not_be_answered_are_stranded():
    log = simulate(Scripted(NOTHING), [Arrival(0.0), Arrival(1.0)], service_time=1.0)

    assert log.stranded == (1, 2)


def test_arrivals_may_be_given_in_any_order():
    log = simulate(FifoScheduler(), [Arrival(2.0), Arrival(1.0)], service_time=0.25)

    assert [entry.time for entry in log.sent] == [1.0, 2.0]
    assert log.arrival_of(1) == Arrival(1.0)


def test_questions_without_a_reason_are_asked_where_they_are_wanted():
    scheduler = Scripted(Decision((Dispatch(0, (1,), "go"),)), NOTHING)

    simulate(scheduler, [Arrival(0.0)], service_time=1.0, asks=[0.25, 0.5])

    assert [when for what, when, _ in scheduler.events if what == "decide"] == [0.0, 0.25, 0.5]


def test_a_settled_ticket_leads_to_a_question_only_where_the_scheduler_wants_one():
    scheduler = Scripted(Decision((Dispatch(0, (1,), "go"),)), NOTHING)
    wishful = Scripted(Decision((Dispatch(0, (1,), "go"),)), NOTHING, wants=True)

    simulate(scheduler, [Arrival(0.0)], service_time=1.0)
    simulate(wishful, [Arrival(0.0)], service_time=1.0)

    assert [when for what, when, _ in scheduler.events if what == "decide"] == [0.0]
    assert [when for what, when, _ in wishful.events if what == "decide"] == [0.0, 1.0]


def test_a_ticket_that_streams_is_over_some_time_after_its_batch():
    log = simulate(FifoScheduler(), [Arrival(0.0, streams=2.0), Arrival(0.5)], service_time=1.0)

    assert log.entries == (
        Sent(0.0, 0, (1,), "single", 1),
        Ended(1.0, 0, (1,)),
        Sent(1.0, 0, (2,), "single", 1),
        Ended(2.0, 0, (2,)),
        Streamed(3.0, 1),
    )


def test_a_request_that_the_model_wants_to_see_again_comes_back_as_a_new_ticket_before_the_old_one_is_over():
    first, second = Decision((Dispatch(0, (1,), "go"),)), Decision((Dispatch(0, (2,), "go"),))
    scheduler = Scripted(first, second, NOTHING)

    log = simulate(scheduler, [Arrival(0.0, returns=1, sequence_start=True)], service_time=1.0)

    assert [(what, when, which) for what, when, which in scheduler.events if what != "decide"] == [
        ("arrive", 0.0, 1),
        ("arrive", 1.0, 2),
        ("settle", 1.0, (1,)),
        ("settle", 2.0, (2,)),
    ]
    assert log.origins == (1, 1)
    assert log.arrival_of(2) is log.arrivals[0]


def test_an_instance_that_crashes_takes_its_batch_along_and_comes_back():
    log = simulate(FifoScheduler(), [Arrival(0.0), Arrival(0.5)], service_time=2.0, crashes=[Crash(1.0, 0, 4.0)])

    assert log.entries == (
        Sent(0.0, 0, (1,), "single", 1),
        Lost(1.0, 0, (1,)),
        Sent(5.0, 0, (2,), "single", 1),
        Ended(7.0, 0, (2,)),
    )


def test_a_scheduler_is_notified_of_the_instance_that_it_lost():
    scheduler = Scripted(NOTHING)
    scheduler.lost = lambda instance, now: scheduler.events.append(("lost", now, instance))

    simulate(scheduler, [], service_time=1.0, crashes=[Crash(1.0, 0)])

    assert scheduler.events == [("lost", 1.0, 0), ("decide", 1.0, (0,))]


def test_rows_and_sequences_that_are_over_are_written_down():
    rows = (Row(0), Row(1, 7, start=True))
    over = SequenceEnd(0, 7, SequenceEndReason.IDLE)
    scheduler = Scripted(Decision((Dispatch(0, (1,), "go", rows),), wake_at=2.0), Decision(ended=(over,)), NOTHING)

    log = simulate(scheduler, [Arrival(0.0)], service_time=1.0)

    assert log.sent == (Sent(0.0, 0, (1,), "go", 1, rows),)
    assert log.over == (SequenceOver(2.0, 0, 7, SequenceEndReason.IDLE),)


@pytest.mark.parametrize(
    ("decision", "complaint"),
    [
        pytest.param(Decision((Dispatch(1, (1,), "go"),)), "instance 1, which is not idle", id="no such instance"),
        pytest.param(
            Decision((Dispatch(0, (1,), "go"), Dispatch(0, (2,), "go"))), "which is not idle", id="instance twice"
        ),
        pytest.param(Decision((Dispatch(0, (1, 1), "go"),)), "ticket 1, which does not wait", id="ticket twice"),
        pytest.param(Decision((Dispatch(0, (7,), "go"),)), "ticket 7, which does not wait", id="unknown ticket"),
        pytest.param(Decision((Dispatch(0, (), "go"),)), "empty batch", id="empty batch"),
        pytest.param(
            Decision((Dispatch(0, (1, 2), "go", (Row(2), Row(1))),)), "do not hold the tickets", id="other rows"
        ),
        pytest.param(
            Decision((Dispatch(0, (1,), "go"),), (Drop((1,), DropReason.TIMEOUT),)),
            "ticket 1, which does not wait",
            id="dropped and sent",
        ),
        pytest.param(Decision(wake_at=1.0), "does not lie in the future", id="woken at once"),
        pytest.param(Decision(wake_at=0.5), "does not lie in the future", id="woken in the past"),
    ],
)
def test_a_scheduler_that_breaks_its_contract_is_stopped(decision, complaint):
    with pytest.raises(ContractBroken, match=complaint):
        simulate(Scripted(decision), [Arrival(1.0), Arrival(1.0)], service_time=1.0)


def test_a_scheduler_may_refuse_only_the_ticket_that_arrives():
    scheduler = Scripted(NOTHING, refuses=Drop((7,), DropReason.QUEUE_FULL))

    with pytest.raises(ContractBroken, match=r"refused the tickets \(7,\)"):
        simulate(scheduler, [Arrival(0.0)], service_time=1.0)


def test_a_scheduler_that_is_woken_for_ever_and_does_nothing_is_stopped():
    class Restless(Scripted):
        def decide(self, now, idle):
            return Decision(wake_at=now + 0.001)

    with pytest.raises(ContractBroken, match="times in a row and did nothing"):
        simulate(Restless(), [Arrival(0.0)], service_time=1.0)

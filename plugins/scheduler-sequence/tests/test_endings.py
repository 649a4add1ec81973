"""How a sequence ends before its time: silence, a caller that leaves, an instance that dies."""

import pytest

from naiad.scheduler import DropReason, Ticket
from naiad_kit.sequences import SequenceEnd, SequenceEndReason
from naiad_testing.history import Crash, Dropped, SequenceOver
from naiad_testing.simulation import simulate

MS = 1e-3


@pytest.fixture(params=["direct", "oldest"])
def one_slot(request):
    """A batcher with room for one sequence on each instance, by either strategy."""
    make = request.getfixturevalue(request.param)
    room = {"slots": 1} if request.param == "direct" else {"max_batch_size": 1, "max_candidate_sequences": 1}
    return lambda **settings: make(**room, **settings)


def test_a_silent_sequence_loses_its_slot_to_the_backlog(one_slot, story, played):
    log = simulate(one_slot(idle_ms=20), story("0:A+ 1:B+ 2:B-"), 5 * MS)

    assert played(log) == ["0: 0[A+]", "25: 0[B+]", "30: 0[B-]"]
    assert log.over == (SequenceOver(25 * MS, 0, 1, SequenceEndReason.IDLE),)


def test_a_sequence_that_was_silent_for_too_long_must_start_anew(one_slot, story):
    log = simulate(one_slot(idle_ms=20), story("0:A+ 30:A 31:A+-"), 5 * MS)

    (refusal,) = log.dropped
    assert (refusal.tickets, refusal.reason) == ((2,), DropReason.INVALID)
    assert "the START flag" in refusal.detail
    assert [sent.rows[0].sequence for sent in log.sent] == [1, 2]


def test_silence_begins_with_an_answer_however_long_it_took(one_slot, story, played):
    log = simulate(one_slot(idle_ms=20), story("0:A+ 65:A-"), 50 * MS)

    assert played(log) == ["0: 0[A+]", "65: 0[A-]"]
    assert log.over == ()


def test_every_request_breaks_the_silence(one_slot, story):
    log = simulate(one_slot(idle_ms=20), story("0:A+ 15:A 30:A 45:A"), 1 * MS)

    assert [(over.time, over.reason) for over in log.over] == [(66 * MS, SequenceEndReason.IDLE)]


def test_a_request_at_the_last_moment_keeps_its_sequence(one_slot, story):
    log = simulate(one_slot(idle_ms=20), story("0:A+ 21:A-"), 1 * MS)

    assert log.dropped == ()
    assert len(log.sent) == 2


def test_a_caller_that_leaves_takes_what_waits_of_its_sequence_along(one_slot, story, played):
    log = simulate(one_slot(), story("0:A+ 1:A 2:A 3:B+-", {"1:A": {"leaves": 4 * MS}}), 10 * MS)

    assert played(log) == ["0: 0[A+]", "10: 0[B+-]"]
    assert log.dropped == (Dropped(4 * MS, (3,), DropReason.CANCELLED),)
    assert log.over == (SequenceOver(4 * MS, 0, 1, SequenceEndReason.CANCELLED),)


def test_a_sequence_of_which_the_model_knows_nothing_is_not_ended_there(one_slot, story, played):
    arrivals = story("0:A+- 1:B+ 2:C+-", {"1:B+": {"leaves": 4 * MS}})

    log = simulate(one_slot(), arrivals, 10 * MS)

    assert played(log) == ["0: 0[A+-]", "10: 0[C+-]"]
    assert log.over == ()


def test_callers_that_all_leave_are_sent_nothing(one_slot):
    scheduler = one_slot()
    for number, start in ((1, True), (2, False), (3, False)):
        scheduler.arrive(Ticket(number, 0.0, sequence_id="A", sequence_start=start))

    settled = [scheduler.settle((number,), 0.0) for number in (1, 2, 3)]

    assert settled == [True, False, False]
    assert scheduler.decide(0.0, (0,)).drops == ()


def test_an_instance_that_dies_ends_its_sequences(one_slot, story, played):
    arrivals = story("0:A+ 1:A 2:A- 3:B+- 20:A")

    log = simulate(one_slot(), arrivals, 10 * MS, crashes=[Crash(5 * MS, 0, 10 * MS)])

    assert played(log) == ["0: 0[A+]", "15: 0[B+-]"]
    lost, refusal = log.dropped
    assert (lost.time, lost.tickets, lost.reason) == (5 * MS, (2, 3), DropReason.LOST)
    assert "sequence A ran on has died" in lost.detail
    assert refusal.tickets == (5,)
    assert log.over == ()


def test_a_dead_instance_gets_no_sequence_before_it_is_back(one_slot, story, played):
    arrivals = story("5:A+ 6:B+- 20:A-")

    log = simulate(one_slot(instances=2), arrivals, 3 * MS, instances=2, crashes=[Crash(1 * MS, 0, 9 * MS)])

    assert played(log) == ["5: 1[A+]", "10: 0[B+-]", "20: 1[A-]"]


def test_sequences_of_other_instances_go_on(one_slot, story, played):
    arrivals = story("0:A+ 0:B+ 10:A- 10:B-")

    log = simulate(one_slot(instances=2), arrivals, 3 * MS, instances=2, crashes=[Crash(5 * MS, 0)])

    assert played(log) == ["0: 0[A+]", "0: 1[B+]", "10: 1[B-]"]


def test_a_silent_sequence_on_a_dead_instance_is_not_ended_twice(one_slot, story):
    log = simulate(one_slot(idle_ms=20), story("0:A+"), 5 * MS, crashes=[Crash(10 * MS, 0)])

    assert log.over == ()


def test_what_streams_when_its_instance_dies_is_forgotten(oldest):
    scheduler = oldest(decoupled=True)
    scheduler.arrive(Ticket(1, 0.0, sequence_id="A", sequence_start=True))
    scheduler.decide(0.0, (0,))

    scheduler.lost(0, 1.0)
    scheduler.settle((1,), 1.0)

    assert scheduler.decide(1.0, ()).ended == ()
    assert scheduler._running == {}


def test_a_decision_tells_what_ended_once(one_slot):
    scheduler = one_slot(idle_ms=20)
    scheduler.arrive(Ticket(1, 0.0, sequence_id="A", sequence_start=True))
    scheduler.decide(0.0, (0,))
    scheduler.settle((1,), 1.0)

    ended = [scheduler.decide(now, (0,)).ended for now in (1.0, 1.021, 2.0)]

    assert ended == [(), (SequenceEnd(0, 1, SequenceEndReason.IDLE),), ()]

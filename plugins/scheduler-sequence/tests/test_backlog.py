"""Sequences without a slot: their order, their requests, and how long they wait."""

import pytest

from naiad.scheduler import DropReason, Ticket
from naiad_testing.history import Dropped
from naiad_testing.simulation import simulate

MS = 1e-3


def test_the_backlog_is_served_in_the_order_of_first_requests(direct, story, played):
    log = simulate(direct(slots=1), story("0:A+ 1:B+ 2:C+ 3:C- 4:B- 10:A-"), 5 * MS)

    assert played(log) == ["0: 0[A+]", "10: 0[A-]", "15: 0[B+]", "20: 0[B-]", "25: 0[C+]", "30: 0[C-]"]


def test_a_new_sequence_does_not_overtake_the_backlog(direct, story, played):
    log = simulate(direct(slots=1), story("0:A+- 1:B+- 5:C+-"), 5 * MS)

    assert played(log) == ["0: 0[A+-]", "5: 0[B+-]", "10: 0[C+-]"]


def test_a_start_for_an_id_in_the_backlog_is_one_more_request_of_it(direct, story):
    log = simulate(direct(slots=1), story("0:A+ 1:B+ 2:B+ 3:B- 10:A-"), 5 * MS)

    rows = [sent.rows[0] for sent in log.sent[2:]]
    assert [(row.ticket, row.sequence, row.start) for row in rows] == [(2, 2, True), (3, 2, True), (4, 2, False)]


def test_a_start_after_the_end_in_the_backlog_is_another_sequence(direct, story):
    log = simulate(direct(slots=1), story("0:A+ 1:B+- 2:B+- 10:A-"), 5 * MS)

    rows = [sent.rows[0] for sent in log.sent[2:]]
    assert [(row.ticket, row.sequence, row.end) for row in rows] == [(2, 2, True), (3, 3, True)]


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
def test_a_sequence_that_gets_no_slot_in_time_is_refused_with_all_its_requests(request, story, strategy):
    make = request.getfixturevalue(strategy)
    scheduler = make(slots=1) if strategy == "direct" else make(max_candidate_sequences=1)
    patience = {"1:B+": {"timeout": 8 * MS}}

    log = simulate(scheduler, story("0:A+ 1:B+ 2:B 20:B-", patience), 5 * MS)

    timeout, refusal = log.dropped
    assert (timeout.time, timeout.tickets, timeout.reason) == (9 * MS, (2, 3), DropReason.TIMEOUT)
    assert "timeout of the corresponding sequence has been expired" in timeout.detail
    assert (refusal.tickets, refusal.reason) == ((4,), DropReason.INVALID)
    assert "the START flag" in refusal.detail


def test_the_shortest_timeout_of_its_requests_counts(direct, story):
    patience = {"1:B+": {"timeout": 50 * MS}, "2:B": {"timeout": 3 * MS}, "3:B": {"timeout": 30 * MS}}

    log = simulate(direct(slots=1), story("0:A+ 1:B+ 2:B 3:B", patience), 5 * MS)

    assert [(entry.time, entry.tickets) for entry in log.dropped] == [(5 * MS, (2, 3, 4))]


def test_a_timeout_means_nothing_to_a_sequence_with_a_slot(direct, story, played):
    hurry = {"0:A+": {"timeout": 1 * MS}, "1:A-": {"timeout": 1 * MS}}

    log = simulate(direct(slots=1), story("0:A+ 1:A-", hurry), 5 * MS)

    assert played(log) == ["0: 0[A+]", "5: 0[A-]"]


def test_a_sequence_that_gets_its_slot_just_in_time_has_no_deadline_any_more(direct, story, played):
    hurry = {"1:B+": {"timeout": 6 * MS}}

    log = simulate(direct(slots=1), story("0:A+- 1:B+ 2:B 3:B-", hurry), 5 * MS)

    assert played(log) == ["0: 0[A+-]", "5: 0[B+]", "10: 0[B]", "15: 0[B-]"]


def test_the_backlog_does_not_fall_silent(direct, story, played):
    log = simulate(direct(slots=1, idle_ms=20), story("0:A+ 1:B+ 15:A 30:A 45:A- 55:B-"), 1 * MS)

    assert played(log) == ["0: 0[A+]", "15: 0[A]", "30: 0[A]", "45: 0[A-]", "46: 0[B+]", "55: 0[B-]"]


def test_a_caller_that_leaves_the_backlog_takes_its_sequence_along(direct, story, played):
    leaves = {"2:B": {"leaves": 4 * MS}}

    log = simulate(direct(slots=1), story("0:A+ 1:B+ 2:B 3:C+- 10:A- 12:B-", leaves), 5 * MS)

    assert played(log) == ["0: 0[A+]", "10: 0[A-]", "15: 0[C+-]"]
    assert log.dropped[0] == Dropped(4 * MS, (2,), DropReason.CANCELLED)
    assert (log.dropped[1].tickets, log.dropped[1].reason) == ((6,), DropReason.INVALID)
    assert log.over == ()


def test_many_deadlines_that_hold_no_more_are_not_kept(direct):
    scheduler = direct(slots=1)
    scheduler.arrive(Ticket(1, 0.0, sequence_id="A", sequence_start=True))

    for number in range(2, 2002):
        scheduler.arrive(Ticket(number, 0.0, sequence_id=number, sequence_start=True, timeout=100.0))
        scheduler.settle((number,), 0.0)

    assert len(scheduler._backlog._deadlines) < 100
    assert len(scheduler._backlog) == 0

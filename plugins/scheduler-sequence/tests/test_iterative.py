"""Iterative sequences: every request is one, for as long as the model asks to see it again."""

import pytest

from naiad.scheduler import DropReason, Ticket
from naiad_testing.history import Arrival, Crash
from naiad_testing.simulation import simulate

MS = 1e-3


@pytest.fixture(params=["direct", "oldest"])
def iterative(request):
    """An iterative batcher, by either strategy."""
    make = request.getfixturevalue(request.param)
    return lambda **settings: make(iterative=True, **settings)


def rows_of(log):
    return [
        [(log.origin_of(row.ticket), row.sequence, row.start, row.end) for row in sent.rows if row.ticket]
        for sent in log.sent
    ]


def test_a_request_is_batched_again_until_the_model_has_seen_enough_of_it(iterative):
    log = simulate(iterative(), [Arrival(0.0, returns=2), Arrival(0.0, returns=1)], 5 * MS)

    assert rows_of(log) == [
        [(1, 1, True, False), (2, 2, True, False)],
        [(1, 1, False, False), (2, 2, False, False)],
        [(1, 1, False, False)],
    ]


def test_its_slot_is_the_next_ones_when_the_model_is_done_with_it(direct):
    arrivals = [Arrival(0.0, returns=1), Arrival(0.0, returns=3), Arrival(0.0), Arrival(0.0)]

    log = simulate(direct(iterative=True), arrivals, 5 * MS)

    assert [[log.origin_of(ticket) for ticket in sent.tickets] for sent in log.sent] == [[1, 2], [1, 2], [3, 2], [4, 2]]
    assert log.over == ()


def test_requests_without_marks_of_a_sequence_are_what_it_takes(iterative):
    marked = Arrival(0.0, sequence_id=7, sequence_start=True, sequence_end=True, returns=1)

    log = simulate(iterative(), [Arrival(0.0), marked, marked], 5 * MS)

    assert log.dropped == ()
    assert [row[1] for row in rows_of(log)[0]] == [1, 2]
    assert not any(row[3] for rows in rows_of(log) for row in rows)


def test_what_came_back_joins_what_is_new(iterative):
    log = simulate(iterative(), [Arrival(0.0, returns=2), Arrival(7 * MS)], 5 * MS)

    assert [sent.time for sent in log.sent] == pytest.approx([0.0, 5 * MS, 10 * MS])
    assert [len(rows) for rows in rows_of(log)] == [1, 1, 2]


def test_a_caller_that_leaves_between_two_rounds_ends_it(iterative):
    scheduler = iterative()
    scheduler.arrive(Ticket(1, 0.0))
    scheduler.decide(0.0, (0,))
    scheduler.arrive(Ticket(2, 1.0, continues=1))
    scheduler.settle((1,), 1.0)

    settled = scheduler.settle((2,), 2.0)

    assert settled
    assert [(end.sequence, end.reason) for end in scheduler.decide(2.0, (0,)).ended] == [(1, "cancelled")]


def test_a_request_whose_instance_has_died_does_not_come_back(iterative):
    scheduler = iterative()
    scheduler.arrive(Ticket(1, 0.0))
    scheduler.decide(0.0, (0,))
    scheduler.lost(0, 1.0)

    refusal = scheduler.arrive(Ticket(2, 1.0, continues=1))

    assert (refusal.tickets, refusal.reason) == ((2,), DropReason.LOST)


def test_a_crash_ends_what_was_to_come_back(iterative):
    log = simulate(iterative(), [Arrival(0.0, returns=5), Arrival(8 * MS)], 5 * MS, crashes=[Crash(7 * MS, 0)])

    assert [[row[0] for row in rows] for rows in rows_of(log)] == [[1], [1], [2]]


def test_a_batch_of_more_than_one_item_is_refused(iterative):
    refusal = iterative().arrive(Ticket(1, 0.0, 2))

    assert "batch-size 1" in refusal.detail

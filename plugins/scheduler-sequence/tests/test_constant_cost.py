"""A request takes as many steps among 10,000 live sequences as among 100."""

import sys
from itertools import count

import pytest

from naiad.scheduler import Ticket

FEW, MANY = 100, 10_000


@pytest.fixture
def steps():
    """Counts the lines of Python that a call runs, in whatever it calls."""
    before = sys.gettrace()

    def counted(call):
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            lines += event == "line"
            return trace

        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
        return lines

    return counted


def started(scheduler, live, instances=(0,)):
    """Numbers for further tickets, after that many sequences have started and as many as can have run once."""
    numbers = count(1)
    for name in range(1, live + 1):
        scheduler.arrive(Ticket(next(numbers), 0.0, sequence_id=name, sequence_start=True))
    while dispatches := scheduler.decide(0.0, instances).dispatches:
        for dispatch in dispatches:
            scheduler.settle(dispatch.tickets, 0.0)
    return numbers


def one_request(scheduler, numbers, now, **marks):
    scheduler.arrive(Ticket(next(numbers), now, **marks))
    for dispatch in scheduler.decide(now, (0,)).dispatches:
        scheduler.settle(dispatch.tickets, now)


def test_a_request_of_a_candidate_among_many(oldest, steps):
    def taken(live):
        scheduler = oldest(max_batch_size=8, max_candidate_sequences=live)
        numbers = started(scheduler, live)
        return steps(lambda: [one_request(scheduler, numbers, 1e-4 * name, sequence_id=name) for name in range(1, 50)])

    assert taken(FEW) == taken(MANY) > 0


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
def test_a_request_of_a_sequence_with_a_slot_before_a_long_backlog(request, strategy, steps):
    def taken(live):
        scheduler = request.getfixturevalue(strategy)(8)
        numbers = started(scheduler, live)
        return steps(lambda: [one_request(scheduler, numbers, 1e-4 * time, sequence_id=1) for time in range(1, 50)])

    assert taken(FEW) == taken(MANY) > 0


def test_a_request_in_a_long_backlog(direct, steps):
    def taken(live):
        scheduler = direct(slots=8)
        numbers = started(scheduler, live)
        names = range(20, 70)
        return steps(
            lambda: [
                one_request(scheduler, numbers, 1e-4, sequence_id=name, timeout=9.0 - name / 100) for name in names
            ]
        )

    assert taken(FEW) == taken(MANY) > 0


def test_a_sequence_that_ends_and_the_next_that_gets_its_slot(direct, steps):
    def taken(live):
        scheduler = direct(slots=1)
        numbers = started(scheduler, live)
        return steps(
            lambda: [
                one_request(scheduler, numbers, 1e-4, sequence_id=name, sequence_end=True) for name in range(1, 50)
            ]
        )

    assert taken(FEW) == taken(MANY) > 0


def test_one_that_falls_silent_among_many_that_have(oldest, steps):
    def taken(live):
        scheduler = oldest(max_batch_size=8, max_candidate_sequences=live, idle_ms=1000)
        numbers = started(scheduler, live - 1)
        scheduler.arrive(Ticket(next(numbers), 0.5, sequence_id="last", sequence_start=True))
        (dispatch,) = scheduler.decide(0.5, (0,)).dispatches

        return steps(lambda: (scheduler.settle(dispatch.tickets, 0.5), scheduler.decide(0.5, (0,))))

    assert taken(FEW) == taken(MANY) > 0


def test_callers_that_leave_a_long_backlog(direct, steps):
    def taken(live):
        scheduler = direct(slots=8)
        started(scheduler, live)
        return steps(lambda: [scheduler.settle((ticket,), 0.0) for ticket in range(30, 80)])

    assert taken(FEW) == taken(MANY) > 0


def test_sequences_that_are_over_are_not_kept_until_they_would_have_been_silent_too_long(direct):
    scheduler = direct(slots=1)
    numbers = count(1)

    for name in range(1, 1001):
        one_request(scheduler, numbers, 0.0, sequence_id=name, sequence_start=True)
        one_request(scheduler, numbers, 0.0, sequence_id=name, sequence_end=True)

    assert len(scheduler._idle_timeouts._heap) == 0
    assert not (scheduler._waiting)
    assert not (scheduler._running)
    assert not (scheduler._open)
    assert not (scheduler._placed[0])


def test_few_that_are_over_are_kept_beside_one_that_lives(direct):
    scheduler = direct()
    numbers = count(1)
    one_request(scheduler, numbers, 0.0, sequence_id="first", sequence_start=True)

    for name in range(1, 1001):
        one_request(scheduler, numbers, 0.0, sequence_id=name, sequence_start=True)
        one_request(scheduler, numbers, 0.0, sequence_id=name, sequence_end=True)

    assert len(scheduler._idle_timeouts._heap) <= 64 + 2


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
def test_requests_that_were_taken_back_from_a_busy_instance_are_not_kept(request, strategy):
    scheduler = request.getfixturevalue(strategy)(2)
    scheduler.arrive(Ticket(1, 0.0, sequence_id="busy", sequence_start=True))
    scheduler.decide(0.0, (0,))

    for number in range(2, 1002):
        scheduler.arrive(Ticket(number, 0.0, sequence_id=number, sequence_start=True))
        scheduler.settle((number,), 0.0)

    assert len(scheduler._batchers[0]._heads._heap) <= 64 + 4


def test_slots_of_a_dead_instance_are_counted_once(direct):
    scheduler = direct(slots=2, instances=2)
    for time in range(5):
        scheduler.lost(0, float(time))
        for number in (1, 2, 3):
            ticket = Ticket(10 * time + number, float(time), sequence_id=number, sequence_start=True)
            scheduler.arrive(ticket)
        scheduler.decide(float(time), (0, 1))
        scheduler.lost(1, time + 0.5)

    scheduler.decide(9.0, (0, 1))

    placed = list(iter(scheduler._slots.take, -1)) + [
        sequence.slot for placed in scheduler._placed for sequence in placed.values()
    ]
    assert sorted(placed) == [0, 1, 2, 3]

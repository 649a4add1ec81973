"""A request takes as many steps among 100,000 live sequences as among 100."""

import sys
from itertools import count

import pytest

from naiad.scheduler import Ticket

FEW, MANY = 100, 100_000


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

"""Any settings and any history: what is promised of sequences holds."""

from dataclasses import replace

import pytest

from naiad_testing.history import Ended, Lost, Sent, Streamed
from naiad_testing.sequences import check_sequence_scheduler, random_iterative_histories, random_sequence_histories
from naiad_testing.simulation import simulate

IDLE = 0.05
HISTORIES = 10  # of each kind: 360 in all, the same in each run


@pytest.mark.parametrize("slots", [0, 1, 3])
@pytest.mark.parametrize("delay", [{}, {"max_queue_delay_microseconds": 6000, "minimum_slot_utilization": 0.7}])
@pytest.mark.parametrize(("text_ids", "stateful"), [(False, False), (True, False), (True, True)])
def test_direct_keeps_every_sequence_in_its_row(direct, slots, delay, text_ids, stateful):
    check_sequence_scheduler(
        lambda: direct(slots=slots, instances=2, idle_ms=50, stateful=stateful, **delay),
        max_batch_size=slots,
        slots=max(1, slots),
        idle_limit=IDLE,
        keeps_rows=True,
        histories=random_sequence_histories(count=HISTORIES, seed=slots, text_ids=text_ids, streams=text_ids),
    )


@pytest.mark.parametrize(("size", "candidates"), [(0, 0), (2, 4), (4, 2)])
@pytest.mark.parametrize("delay", [{}, {"max_queue_delay_microseconds": 6000, "preferred_batch_size": (1, 2)}])
@pytest.mark.parametrize("streams", [False, True])
def test_oldest_keeps_every_sequence_on_its_instance(oldest, size, candidates, delay, streams):
    if not size:
        delay = {}
    check_sequence_scheduler(
        lambda: oldest(
            max_batch_size=size,
            max_candidate_sequences=candidates,
            instances=2,
            idle_ms=50,
            decoupled=streams,
            **delay,
        ),
        max_batch_size=size,
        slots=max(1, candidates),
        idle_limit=IDLE,
        keeps_rows=False,
        histories=random_sequence_histories(count=HISTORIES, seed=size, streams=streams),
    )


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
def test_what_comes_back_goes_where_it_was(request, strategy):
    make = request.getfixturevalue(strategy)
    check_sequence_scheduler(
        lambda: make(3, instances=2, iterative=True),
        max_batch_size=3,
        slots=3 if strategy == "direct" else 4,
        idle_limit=1.0,
        keeps_rows=strategy == "direct",
        histories=random_iterative_histories(count=HISTORIES),
    )


class Forgetful:
    """The same batcher, but every batch is formed anew at every question."""

    def __init__(self, scheduler):
        self._scheduler = scheduler
        self.arrive, self.settle, self.lost = scheduler.arrive, scheduler.settle, scheduler.lost

    def decide(self, now, idle):
        for batcher in self._scheduler._batchers:
            batcher._heads.put_back(batcher._open)
            batcher._open = []
        return self._scheduler.decide(now, idle)


@pytest.mark.parametrize("preferred", [(), (2,), (1, 3)])
def test_what_is_remembered_between_questions_changes_no_answer(oldest, preferred):
    def make():
        return oldest(4, 2, 50, preferred_batch_size=preferred, max_queue_delay_microseconds=6000)

    for history in random_sequence_histories(count=25, seed=11):
        log = simulate(make(), history.arrivals, 0.004, 2, crashes=history.crashes)
        anew = simulate(Forgetful(make()), history.arrivals, 0.004, 2, crashes=history.crashes)
        assert log == anew


@pytest.mark.parametrize("utilization", [0.0, 0.5, 1.0])
def test_an_idle_instance_never_lets_a_request_wait_longer_than_the_delay(direct, utilization):
    delay = 0.006
    for history in random_sequence_histories(count=25, seed=12):
        scheduler = direct(12, 1, 50, minimum_slot_utilization=utilization, max_queue_delay_microseconds=6000)
        single_shape = [replace(each, shape_key=None) for each in history.arrivals]
        log = simulate(scheduler, single_shape, 0.0)

        waits = [sent.time - log.arrival_of(ticket).time for sent in log.sent for ticket in sent.tickets]
        assert max(waits) <= (delay if utilization else 0.0) + 1e-9


@pytest.mark.parametrize("strategy", ["direct", "oldest"])
def test_a_request_that_needs_the_state_of_the_last_one_never_runs_beside_it(request, strategy):
    make = request.getfixturevalue(strategy)
    for history in random_sequence_histories(count=HISTORIES, seed=13, streams=True):
        scheduler = make(3, 2, 50, decoupled=True, stateful=True)

        log = simulate(scheduler, history.arrivals, 0.004, 2, crashes=history.crashes)

        running = {}  # the sequence of each ticket
        for entry in log.entries:
            if isinstance(entry, Sent):
                begun = {row.ticket: row.sequence for row in entry.rows if row.ticket}
                assert not set(begun.values()) & set(running.values())
                running |= begun
            for ticket in over(log, entry):
                running.pop(ticket, None)


def over(log, entry):
    """The tickets of which nothing more will come."""
    if isinstance(entry, Ended):
        return [ticket for ticket in entry.tickets if not log.arrival_of(ticket).streams]
    if isinstance(entry, Lost):
        return entry.tickets
    return [entry.ticket] if isinstance(entry, Streamed) else []

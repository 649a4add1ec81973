"""Priority levels: who is served first, and under which policy."""

import pytest

from naiad.scheduler import DropReason, Ticket
from naiad_config import ModelQueuePolicy, TimeoutAction
from naiad_scheduler_dynamic.reasons import Reason
from naiad_testing.history import Arrival
from naiad_testing.simulation import simulate

MS = 1e-3


@pytest.fixture
def order(batches):
    """The tickets of a log in the order in which they were served."""

    def of(log):
        return [ticket for _, tickets, _ in batches(log) for ticket in tickets]

    return of


def test_a_higher_level_is_served_first_and_each_level_in_its_order(batcher, order):
    scheduler = batcher(max_batch_size=1, priority_levels=3, default_priority_level=2)
    waiting = [Arrival(0.001, priority=priority) for priority in (3, 1, 2, 1, 3, 2)]

    log = simulate(scheduler, [Arrival(0.0, priority=1), *waiting], 0.01)

    assert order(log) == [1, 3, 5, 4, 7, 2, 6]


@pytest.mark.parametrize("priority", [0, 4, 2**63], ids=["none given", "above the levels", "far above"])
def test_a_request_without_a_valid_priority_has_the_default_level(batcher, order, priority):
    scheduler = batcher(max_batch_size=1, priority_levels=3, default_priority_level=2)
    waiting = [Arrival(0.001, priority=each) for each in (3, priority, 2, 1)]

    log = simulate(scheduler, [Arrival(0.0), *waiting], 0.01)

    assert order(log) == [1, 5, 3, 4, 2]


def test_without_levels_the_priority_is_ignored(batcher, order):
    policy = ModelQueuePolicy(max_queue_size=10)
    scheduler = batcher(max_batch_size=1, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0, priority=priority) for priority in (3, 1, 2)], 0.01)

    assert order(log) == [1, 2, 3]


def test_one_batch_may_hold_requests_of_several_levels(batcher, batches):
    scheduler = batcher(priority_levels=2, default_priority_level=2)

    log = simulate(scheduler, [Arrival(0.0, priority=priority) for priority in (2, 1, 2)], 0.01)

    assert batches(log) == [(0.0, (2, 1, 3), "no delay")]


def test_a_request_of_a_higher_level_goes_before_a_batch_that_waits(batcher, batches):
    scheduler = batcher(priority_levels=2, default_priority_level=2, max_queue_delay_microseconds=5000)
    arrivals = [Arrival(0.0, 4, priority=2), Arrival(0.001, 3, priority=2), Arrival(0.002, 5, priority=1)]

    log = simulate(scheduler, arrivals, 0.0005)

    assert batches(log) == [(2 * MS, (3,), Reason.NEXT_TOO_LARGE), (5 * MS, (1, 2), "delay expired")]


def test_the_delay_counts_from_the_oldest_request_of_all_levels(batcher, batches):
    scheduler = batcher(priority_levels=2, default_priority_level=2, max_queue_delay_microseconds=5000)

    log = simulate(scheduler, [Arrival(0.0, priority=2), Arrival(0.003, priority=1)], 0.01)

    assert batches(log) == [(5 * MS, (2, 1), "delay expired")]


def test_each_level_has_its_own_policy_or_else_the_default_one(batcher):
    scheduler = batcher(
        priority_levels=2,
        default_priority_level=2,
        default_queue_policy=ModelQueuePolicy(default_timeout_microseconds=4000),
        priority_queue_policy={1: ModelQueuePolicy(default_timeout_microseconds=2000)},
    )
    waiting = [Arrival(0.001, priority=1), Arrival(0.001, priority=2), Arrival(0.001)]

    log = simulate(scheduler, [Arrival(0.0), *waiting], 0.02)

    assert [(entry.time, entry.tickets) for entry in log.dropped] == [(3 * MS, (2,)), (5 * MS, (3, 4))]


def test_each_level_has_its_own_room(batcher):
    limited = ModelQueuePolicy(max_queue_size=1)
    scheduler = batcher(
        priority_levels=2,
        default_priority_level=2,
        priority_queue_policy={1: limited},
        max_queue_delay_microseconds=9000,
    )

    refusals = [
        scheduler.arrive(Ticket(number, 0.0, priority=priority)) for number, priority in enumerate((1, 1, 2, 2), 1)
    ]

    assert [refusal.reason if refusal else None for refusal in refusals] == [None, DropReason.QUEUE_FULL, None, None]


def test_delayed_requests_are_served_before_lower_levels(batcher, order):
    policy = ModelQueuePolicy(timeout_action=TimeoutAction.DELAY, default_timeout_microseconds=2000)
    scheduler = batcher(
        max_batch_size=1, priority_levels=2, default_priority_level=2, priority_queue_policy={1: policy}
    )
    waiting = [Arrival(0.001, priority=2), Arrival(0.002, priority=1), Arrival(0.009, priority=1)]

    log = simulate(scheduler, [Arrival(0.0), *waiting], 0.01)

    assert order(log) == [1, 4, 3, 2]


def test_one_level_may_still_have_a_policy_of_its_own(batcher):
    limited = {1: ModelQueuePolicy(max_queue_size=1)}
    scheduler = batcher(priority_levels=1, default_priority_level=1, priority_queue_policy=limited)

    refusals = [scheduler.arrive(Ticket(number, 0.0)) for number in (1, 2)]

    assert [refusal is None for refusal in refusals] == [True, False]


def test_a_configuration_may_allow_millions_of_levels(batcher, order):
    scheduler = batcher(max_batch_size=1, priority_levels=2**40, default_priority_level=2**39)
    waiting = [Arrival(0.001, priority=priority) for priority in (2**40, 0, 7)]

    log = simulate(scheduler, [Arrival(0.0), *waiting], 0.01)

    assert order(log) == [1, 4, 3, 2]

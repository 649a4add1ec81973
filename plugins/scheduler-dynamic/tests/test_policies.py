"""Queue policies: limits, timeouts that reject or delay, and a request's own timeout."""

import pytest

from naiad.scheduler import DropReason, Ticket
from naiad_config import ModelQueuePolicy, TimeoutAction
from naiad_testing.history import Arrival
from naiad_testing.simulation import simulate

MS = 1e-3
DELAY = TimeoutAction.DELAY


def drops(log):
    return [(entry.time, entry.tickets, entry.reason) for entry in log.dropped]


def test_a_request_to_a_full_queue_is_refused_at_once(batcher):
    scheduler = batcher(default_queue_policy=ModelQueuePolicy(max_queue_size=2))

    log = simulate(scheduler, [Arrival(0.0, 8), *[Arrival(0.001)] * 3], 0.01)

    assert drops(log) == [(1 * MS, (4,), DropReason.QUEUE_FULL)]
    assert "max_queue_size is 2" in log.dropped[0].detail


def test_requests_that_execute_do_not_count_as_waiting(batcher):
    scheduler = batcher(default_queue_policy=ModelQueuePolicy(max_queue_size=1))

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001)], 0.01)

    assert drops(log) == []


def test_a_request_held_back_by_the_delay_counts_as_waiting(batcher):
    policy = ModelQueuePolicy(max_queue_size=1)
    scheduler = batcher(max_queue_delay_microseconds=5000, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001)], 0.01)

    assert drops(log) == [(1 * MS, (2,), DropReason.QUEUE_FULL)]


def test_a_caller_that_leaves_makes_room_in_the_queue(batcher):
    scheduler = batcher(default_queue_policy=ModelQueuePolicy(max_queue_size=1))
    arrivals = [Arrival(0.0), Arrival(0.001, leaves=0.002), Arrival(0.003)]

    log = simulate(scheduler, arrivals, 0.01)

    assert drops(log) == []


def test_a_request_past_its_timeout_is_rejected_although_no_instance_is_idle(batcher):
    scheduler = batcher(default_queue_policy=ModelQueuePolicy(default_timeout_microseconds=4000))

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001), Arrival(0.002)], 0.05)

    assert drops(log) == [(5 * MS, (2,), DropReason.TIMEOUT), (6 * MS, (3,), DropReason.TIMEOUT)]


def test_without_an_idle_instance_the_scheduler_wakes_for_the_nearest_rejection(batcher):
    policy = ModelQueuePolicy(default_timeout_microseconds=4000, allow_timeout_override=True)
    scheduler = batcher(max_queue_delay_microseconds=1000, default_queue_policy=policy)
    scheduler.arrive(Ticket(1, 0.0))
    scheduler.arrive(Ticket(2, 0.001, timeout=0.002))

    assert scheduler.decide(0.001, ()).wake_at == pytest.approx(0.003)


def test_a_batch_that_waits_wakes_for_a_rejection_that_comes_before_the_end_of_the_delay(batcher, batches):
    policy = ModelQueuePolicy(default_timeout_microseconds=2000)
    scheduler = batcher(max_queue_delay_microseconds=5000, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001)], 0.01)

    assert drops(log) == [(2 * MS, (1,), DropReason.TIMEOUT), (3 * MS, (2,), DropReason.TIMEOUT)]
    assert batches(log) == []


def test_a_rejected_request_leaves_a_batch_that_waits(batcher, batches):
    policy = ModelQueuePolicy(default_timeout_microseconds=50000, allow_timeout_override=True)
    scheduler = batcher(max_queue_delay_microseconds=5000, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001, timeout=0.002), Arrival(0.001)], 0.01)

    assert drops(log) == [(3 * MS, (2,), DropReason.TIMEOUT)]
    assert batches(log) == [(5 * MS, (1, 3), "delay expired")]


@pytest.mark.parametrize(
    ("default", "allowed", "requested", "expected"),
    [
        pytest.param(4000, True, 0.002, 0.002, id="a shorter one counts"),
        pytest.param(4000, True, 0.009, 0.004, id="a longer one does not"),
        pytest.param(4000, False, 0.002, 0.004, id="none counts where it is not allowed"),
        pytest.param(4000, True, 0.0, 0.004, id="none given"),
        pytest.param(0, True, 0.002, 0.002, id="one counts where there is no default"),
        pytest.param(0, False, 0.002, None, id="none counts where there is no default and it is not allowed"),
    ],
)
def test_a_requests_own_timeout(batcher, default, allowed, requested, expected):
    policy = ModelQueuePolicy(default_timeout_microseconds=default, allow_timeout_override=allowed)
    scheduler = batcher(default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0, 8), Arrival(0.0, timeout=requested)], 0.02)

    assert [entry.time for entry in log.dropped] == ([] if expected is None else [pytest.approx(expected)])


def test_a_delayed_request_is_served_after_those_within_their_timeout(batcher, batches):
    policy = ModelQueuePolicy(timeout_action=DELAY, default_timeout_microseconds=4000)
    scheduler = batcher(max_batch_size=1, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001), Arrival(0.008), Arrival(0.009)], 0.01)

    assert [tickets for _, tickets, _ in batches(log)] == [(1,), (3,), (2,), (4,)]
    assert drops(log) == []


def test_delayed_requests_keep_their_order_among_themselves(batcher, batches):
    policy = ModelQueuePolicy(timeout_action=DELAY, default_timeout_microseconds=1000)
    scheduler = batcher(default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0), *[Arrival(0.001)] * 3, Arrival(0.0095)], 0.01)

    assert batches(log)[1:] == [(10 * MS, (5, 2, 3, 4), "no delay")]


def test_a_delayed_request_gives_way_in_a_batch_that_waits(batcher, batches):
    policy = ModelQueuePolicy(timeout_action=DELAY, default_timeout_microseconds=2000)
    scheduler = batcher(preferred_batch_size=(2, 8), max_queue_delay_microseconds=8000, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0, 3), Arrival(0.001, 2)], 0.0005)

    assert batches(log) == [(2 * MS, (2,), "preferred size"), (8 * MS, (1,), "delay expired")]


def test_a_request_within_its_timeout_goes_before_a_delayed_one_in_a_batch_that_waits(batcher, batches):
    policy = ModelQueuePolicy(timeout_action=DELAY, default_timeout_microseconds=2000)
    scheduler = batcher(max_queue_delay_microseconds=8000, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001), Arrival(0.007)], 0.01)

    assert batches(log) == [(8 * MS, (3, 1, 2), "delay expired")]


def test_a_delayed_request_that_leaves_is_forgotten(batcher, batches):
    policy = ModelQueuePolicy(timeout_action=DELAY, default_timeout_microseconds=1000)
    scheduler = batcher(max_batch_size=1, default_queue_policy=policy)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001, leaves=0.006), Arrival(0.007)], 0.01)

    assert [tickets for _, tickets, _ in batches(log)] == [(1,), (3,)]


def test_deadlines_of_requests_that_are_over_are_forgotten(batcher):
    policy = ModelQueuePolicy(default_timeout_microseconds=10**9)
    scheduler = batcher(default_queue_policy=policy)

    for number in range(1, 1001):
        scheduler.arrive(Ticket(number, float(number)))
        scheduler.settle(scheduler.decide(float(number), (0,)).dispatches[0].tickets, float(number))

    assert scheduler.decide(1001.0, ()).wake_at is None

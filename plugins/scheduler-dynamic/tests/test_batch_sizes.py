"""Which requests form a batch, and when it goes: preferred sizes, the delay, the limit of the model."""

import pytest

from naiad.scheduler import DropReason, Ticket
from naiad_testing.history import Arrival
from naiad_testing.simulation import simulate

MS = 1e-3


def together(*sizes, time=0.0, shape=None):
    return [Arrival(time, size, shape) for size in sizes]


def test_what_is_there_goes_at_once_without_a_delay(batcher, batches):
    log = simulate(batcher(), together(1, 1, 1), 0.01)

    assert batches(log) == [(0.0, (1, 2, 3), "no delay")]


def test_requests_that_come_during_an_execution_form_the_next_batch(batcher, batches):
    arrivals = [Arrival(0.0), Arrival(0.002), Arrival(0.004), Arrival(0.006)]

    log = simulate(batcher(), arrivals, 0.01)

    assert batches(log) == [(0.0, (1,), "no delay"), (0.01, (2, 3, 4), "no delay")]


def test_a_full_batch_goes_at_once(batcher, batches):
    log = simulate(batcher(max_queue_delay_microseconds=5000), together(4, 4), 0.01)

    assert batches(log) == [(0.0, (1, 2), "full")]


def test_a_partial_batch_waits_for_its_delay(batcher, batches):
    log = simulate(batcher(max_queue_delay_microseconds=5000), together(4, 3), 0.01)

    assert batches(log) == [(5 * MS, (1, 2), "delay expired")]


def test_the_delay_counts_from_the_oldest_request(batcher, batches):
    arrivals = [Arrival(0.0), Arrival(0.003), Arrival(0.006)]

    log = simulate(batcher(max_queue_delay_microseconds=5000), arrivals, 0.0005)

    assert batches(log) == [(5 * MS, (1, 2), "delay expired"), (11 * MS, (3,), "delay expired")]


def test_a_delay_that_passed_while_no_instance_was_idle_is_over(batcher, batches):
    arrivals = [Arrival(0.0, 8), Arrival(0.001)]

    log = simulate(batcher(max_queue_delay_microseconds=5000), arrivals, 0.02)

    assert batches(log) == [(0.0, (1,), "full"), (20 * MS, (2,), "delay expired")]


def test_a_preferred_size_goes_at_once_and_the_rest_waits_for_its_own_delay(batcher, batches):
    scheduler = batcher(preferred_batch_size=(2, 6), max_queue_delay_microseconds=5000)

    log = simulate(scheduler, together(1, 1, 1), 0.0005)

    assert batches(log) == [(0.0, (1, 2), "preferred size"), (5 * MS, (3,), "delay expired")]


def test_the_largest_preferred_size_that_can_be_made_wins(batcher, batches):
    scheduler = batcher(preferred_batch_size=(4, 8), max_batch_size=16, max_queue_delay_microseconds=5000)

    log = simulate(scheduler, together(*[1] * 9), 0.0005)

    assert batches(log) == [(0.0, tuple(range(1, 9)), "preferred size"), (5 * MS, (9,), "delay expired")]


def test_a_preferred_size_goes_alone_also_without_a_delay(batcher, batches):
    scheduler = batcher(preferred_batch_size=(4,))

    log = simulate(scheduler, together(*[1] * 5), 0.01)

    assert batches(log) == [(0.0, (1, 2, 3, 4), "preferred size"), (10 * MS, (5,), "no delay")]


def test_a_request_that_makes_a_waiting_batch_preferred_sends_it(batcher, batches):
    scheduler = batcher(preferred_batch_size=(4,), max_queue_delay_microseconds=50000)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001, 2), Arrival(0.002)], 0.01)

    assert batches(log) == [(2 * MS, (1, 2, 3), "preferred size")]


def test_a_size_between_two_preferred_ones_waits(batcher, batches):
    scheduler = batcher(preferred_batch_size=(2, 6), max_queue_delay_microseconds=5000)

    log = simulate(scheduler, together(1, 3), 0.01)

    assert batches(log) == [(5 * MS, (1, 2), "delay expired")]


def test_a_request_larger_than_every_preferred_size_goes_alone_at_once(batcher, batches):
    scheduler = batcher(preferred_batch_size=(2, 6), max_queue_delay_microseconds=5000)

    log = simulate(scheduler, together(7, 1), 0.0005)

    assert batches(log) == [(0.0, (1,), "past every preferred size"), (5 * MS, (2,), "delay expired")]


def test_a_request_that_passes_every_preferred_size_sends_those_before_it(batcher, batches):
    scheduler = batcher(preferred_batch_size=(2, 6), max_queue_delay_microseconds=5000)

    log = simulate(scheduler, [Arrival(0.0, 3), Arrival(0.001, 4)], 0.0005)

    assert batches(log) == [(1 * MS, (1,), "past every preferred size"), (6 * MS, (2,), "delay expired")]


def test_an_expired_delay_fills_the_batch_beyond_the_preferred_sizes(batcher, batches):
    scheduler = batcher(preferred_batch_size=(4,), max_queue_delay_microseconds=5000)
    busy = [Arrival(0.0, 8)]

    log = simulate(scheduler, [*busy, *together(*[1] * 10, time=0.001)], 0.02)

    assert batches(log)[1:] == [(20 * MS, tuple(range(2, 10)), "full"), (40 * MS, (10, 11), "delay expired")]


def test_without_a_delay_requests_that_make_no_preferred_size_go_together(batcher, batches):
    log = simulate(batcher(preferred_batch_size=(2, 6)), together(3, 4), 0.01)

    assert batches(log) == [(0.0, (1, 2), "no delay")]


def test_a_request_that_would_pass_the_limit_is_never_split(batcher, batches):
    log = simulate(batcher(), together(5, 5, 3), 0.01)

    assert batches(log) == [(0.0, (1,), "next request does not fit"), (10 * MS, (2, 3), "full")]


def test_a_batch_that_the_next_request_does_not_fit_does_not_wait(batcher, batches):
    log = simulate(batcher(max_queue_delay_microseconds=5000), together(5, 5), 0.0005)

    assert batches(log) == [(0.0, (1,), "next request does not fit"), (5 * MS, (2,), "delay expired")]


def test_every_idle_instance_gets_a_batch_in_one_decision(batcher):
    scheduler = batcher(max_batch_size=2)
    for number in range(1, 6):
        scheduler.arrive(Ticket(number, 0.0))

    decision = scheduler.decide(0.0, (4, 0, 7))

    assert [(sent.instance, sent.tickets) for sent in decision.dispatches] == [(4, (1, 2)), (0, (3, 4)), (7, (5,))]
    assert decision.wake_at is None


def test_a_model_without_batching_gets_its_requests_one_by_one(batcher, batches):
    log = simulate(batcher(max_batch_size=0), together(1, 1), 0.01, instances=2)

    assert batches(log) == [(0.0, (1,), "full"), (0.0, (2,), "full")]


def test_requests_of_different_shapes_never_share_a_batch(batcher, batches):
    arrivals = [*together(1, 1), *together(1, shape="wide"), *together(1)]

    log = simulate(batcher(), arrivals, 0.01)

    assert batches(log) == [
        (0.0, (1, 2), "shape changed"),
        (10 * MS, (3,), "shape changed"),
        (20 * MS, (4,), "no delay"),
    ]


def test_a_change_of_shape_ends_the_wait_of_those_before_it(batcher, batches):
    scheduler = batcher(max_queue_delay_microseconds=5000)

    log = simulate(scheduler, [Arrival(0.0), Arrival(0.001, 3), Arrival(0.002, 1, "wide")], 0.0005)

    assert batches(log) == [(2 * MS, (1, 2), "shape changed"), (7 * MS, (3,), "delay expired")]


def test_a_caller_that_leaves_makes_room_in_the_batch_that_waits(batcher, batches):
    scheduler = batcher(max_queue_delay_microseconds=5000)
    arrivals = [Arrival(0.0, 3, leaves=0.001), Arrival(0.0, 4), Arrival(0.002, 4)]

    log = simulate(scheduler, arrivals, 0.01)

    assert batches(log) == [(2 * MS, (2, 3), "full")]


def test_the_delay_counts_from_the_oldest_request_that_is_still_there(batcher, batches):
    scheduler = batcher(max_queue_delay_microseconds=5000)

    log = simulate(scheduler, [Arrival(0.0, leaves=0.004), Arrival(0.003)], 0.01)

    assert batches(log) == [(8 * MS, (2,), "delay expired")]


def test_a_request_larger_than_the_model_takes_is_refused(batcher):
    refusal = batcher().arrive(Ticket(1, 0.0, batch_size=9))

    assert refusal is not None
    assert refusal.reason is DropReason.INVALID
    assert "9" in refusal.detail
    assert "max_batch_size 8" in refusal.detail


def test_the_same_wait_is_answered_with_the_same_decision(batcher):
    scheduler = batcher(max_queue_delay_microseconds=5000)
    scheduler.arrive(Ticket(1, 0.0))

    first, second = scheduler.decide(0.0, (0,)), scheduler.decide(0.001, (0,))

    assert first.wake_at == pytest.approx(0.005)
    assert second is first


def test_what_stands_behind_a_preferred_size_goes_to_the_next_idle_instance(batcher, batches):
    log = simulate(batcher(preferred_batch_size=(2, 6)), together(1, 1, 1), 0.01, instances=2)

    assert batches(log) == [(0.0, (1, 2), "preferred size"), (0.0, (3,), "no delay")]

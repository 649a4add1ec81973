"""The figures of a simulation."""

import pytest

from naiad.default_scheduler import FifoScheduler
from naiad.scheduler import DropReason
from naiad_testing.history import Arrival, Crash, Dropped, Ended, Log, Sent, Waited
from naiad_testing.simulation import simulate
from naiad_testing.summary import summarise


def test_a_log_is_counted_and_measured():
    log = Log(
        arrivals=(Arrival(1.0, 2), Arrival(1.0, 3), Arrival(2.0, 4), Arrival(2.0)),
        entries=(
            Dropped(2.0, (4,), DropReason.QUEUE_FULL),
            Sent(2.0, 0, (1, 2), "full", 5),
            Sent(3.0, 1, (3,), "no delay", 4),
            Ended(4.0, 0, (1, 2)),
            Ended(5.0, 1, (3,)),
        ),
        instances=2,
    )

    summary = summarise(log)

    assert (summary.requests, summary.sent, summary.items, summary.batches) == (4, 3, 9, 2)
    assert summary.batch_sizes == {4: 1, 5: 1}
    assert summary.reasons == {"full": 1, "no delay": 1}
    assert summary.dropped == {"queue full": 1}
    assert summary.mean_batch_size == 4.5
    assert (summary.span, summary.throughput, summary.utilisation) == (4.0, 0.75, 0.5)


def test_percentiles_are_those_of_the_waits_of_all_requests():
    log = simulate(FifoScheduler(), [Arrival(0.0)] * 100, service_time=1.0)

    summary = summarise(log)

    assert (summary.wait_p50, summary.wait_p99, summary.wait_max) == (49.0, 98.0, 99.0)


def test_callers_that_left_are_counted():
    log = simulate(FifoScheduler(), [Arrival(0.0), Arrival(0.0, leaves=0.5)], service_time=1.0)

    assert summarise(log).departed == 1


@pytest.mark.parametrize("arrivals", [(), (Arrival(1.0),)], ids=["no arrivals", "no time passes"])
def test_nothing_much_has_figures_too(arrivals):
    summary = summarise(simulate(FifoScheduler(), arrivals, service_time=0.0))

    assert summary.batches == len(arrivals)
    assert (summary.throughput, summary.utilisation, summary.wait_max) == (0.0, 0.0, 0.0)


def test_a_wake_after_the_last_batch_is_no_part_of_the_time():
    log = Log(
        (Arrival(0.0),), (Sent(0.0, 0, (1,), "full", 1), Ended(2.0, 0, (1,)), Waited(2.0, 9.0), Waited(9.0, 10.0)), 1
    )

    assert (summarise(log).span, summarise(log).utilisation) == (2.0, 1.0)


def test_an_instance_that_dies_was_busy_until_then():
    log = simulate(FifoScheduler(), [Arrival(0.0)], service_time=4.0, crashes=[Crash(1.0, 0)])

    assert summarise(log).utilisation == 1.0

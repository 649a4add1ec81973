"""What two readings of a version say of the time between."""

import pytest

from naiad_dashboard.readings import Distribution, Phase, Reading, phases, point

BOUNDS = (0.001, 0.002, 0.004)


def reading(at, requests=0, counts=(0, 0, 0, 0), load=1.0, **values):
    same = {"failures": 0, "executions": 0, "inferences": 0, "total_ns": 0, "queue_ns": 0, "queue": 0, "in_flight": 0}
    distributions = (Distribution(BOUNDS, counts),) * 5
    chosen = {"compute_ns": (0, 0, 0), "distributions": distributions, **same, **values}
    return Reading(at=at, load=load, requests=requests, **chosen)


def test_rates_are_those_between_two_readings():
    first = reading(10.0, 100, failures=1)
    second = reading(12.0, 150, failures=5, executions=4, inferences=10, queue=3, in_flight=7)

    now = point(first, first, second)

    assert (now.rate, now.errors, now.batch, now.queue, now.in_flight) == (25.0, 2.0, 2.5, 3, 7)


def test_a_first_reading_knows_no_rate_and_the_latencies_since_the_load():
    now = point(None, None, reading(10.0, 4, (4, 0, 0, 0), total_ns=2_000_000))

    assert (now.rate, now.errors, now.batch) == (None, None, None)
    assert now.p50 == pytest.approx(0.0005)


@pytest.mark.parametrize(
    ("counts", "quantile", "seconds"),
    [
        ((0, 0, 0, 0), 0.5, None),
        ((2, 0, 0, 0), 0.5, 0.0005),
        ((1, 1, 0, 0), 0.99, 0.00198),
        ((0, 0, 4, 0), 0.25, 0.0025),
        ((0, 0, 0, 9), 0.5, 0.004),  # above all bounds nothing is known
    ],
)
def test_a_quantile_is_interpolated_within_its_bucket(counts, quantile, seconds):
    result = Distribution(BOUNDS, counts).quantile(quantile)

    assert result == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("mean", "median", "high"), [(0.0, 0.0, 0.0), (0.000_01, 0.000_02, 0.000_99), (0.0006, 0.0005, 0.000_99)]
)
def test_quantiles_of_short_durations_are_no_more_than_their_mean_allows(mean, median, high):
    short = Distribution(BOUNDS, (10, 0, 0, 0))

    assert short.quantile(0.5, mean) == pytest.approx(median)
    assert short.quantile(0.99, mean) == pytest.approx(high)


def test_quantiles_are_those_of_the_time_between_and_not_of_all_time():
    earlier, now = reading(10.0, 1000, (1000, 0, 0, 0)), reading(11.0, 1010, (1000, 0, 10, 0), total_ns=30_000_000)

    assert point(earlier, earlier, now).p50 == pytest.approx(0.003)


def test_phases_have_means_without_metrics():
    now = reading(
        10.0, 2, total_ns=8_000_000, queue_ns=2_000_000, compute_ns=(1_000_000, 4_000_000, 0), distributions=()
    )

    assert phases(None, now) == [
        Phase("request", 0.004, None, None),
        Phase("queue", 0.001, None, None),
        Phase("input", 0.0005, None, None),
        Phase("infer", 0.002, None, None),
        Phase("output", 0.0, None, None),
    ]


def test_a_reload_begins_anew():
    assert reading(11.0, 5).continues(reading(10.0, 4))
    assert not reading(11.0, 5, load=2.0).continues(reading(10.0, 4))
    assert not reading(11.0, 3).continues(reading(10.0, 4))

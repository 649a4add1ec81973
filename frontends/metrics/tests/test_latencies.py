"""Latencies as distributions."""

import math
import random

import pytest

from naiad_kit.metrics import Distribution
from naiad_metrics.latencies import BOUNDS, PHASES, Latencies, LatencyHistogram, LatencyPlan
from naiad_metrics.sliding import SlidingQuantiles
from naiad_statistics.observers import KeepsDistributions

MS = 1_000_000


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_duration_falls_into_the_bucket_whose_bound_it_does_not_pass() -> None:
    histogram = LatencyHistogram((0.001, 0.01))

    histogram.add_all([0, 1 * MS, 1 * MS + 1])
    histogram.add(10 * MS, times=3)
    histogram.add(11 * MS)

    assert histogram.snapshot(43 * MS) == Distribution((0.001, 0.01), (2, 4, 1), 0.043)


def test_every_request_of_a_batch_is_observed_in_every_phase() -> None:
    latencies = Latencies(LatencyPlan(bounds=((0.010, 0.020, 0.030),) * len(PHASES)))

    latencies.answered([25 * MS, 35 * MS], [5 * MS, 15 * MS], (1 * MS, 15 * MS, 25 * MS))

    counts = dict(zip(PHASES, (each.counts for each in latencies.histograms), strict=True))
    assert counts == {
        "request": [0, 0, 1, 1],
        "queue": [1, 1, 0, 0],
        "compute_input": [2, 0, 0, 0],
        "compute_infer": [0, 2, 0, 0],
        "compute_output": [0, 0, 2, 0],
    }


def test_first_responses_and_summaries_are_kept_only_where_they_are_asked_for() -> None:
    plain, detailed = Latencies(LatencyPlan()), Latencies(LatencyPlan(first_response=(100, 500), summaries=True))

    for latencies in (plain, detailed):
        latencies.answered([200 * MS], [0], (0, 0, 0))
        latencies.first_responses([200 * MS, 501 * MS])

    assert (plain.first_response, plain.summaries, plain.quantiles([0.5])) == (None, None, [])
    assert detailed.first_response is not None
    assert detailed.first_response.snapshot(detailed.first_response_ns) == Distribution((100, 500), (0, 2, 1), 901.0)
    assert detailed.quantiles([0.5])[0] == pytest.approx([200 * MS], rel=0.01)


def test_a_summary_has_the_phases_of_a_batch_once_for_each_of_its_requests() -> None:
    clock = Clock()
    latencies = Latencies(LatencyPlan(summaries=True, clock=clock))

    latencies.answered([10 * MS], [1 * MS], (1 * MS, 8 * MS, 0))
    latencies.answered([20 * MS] * 3, [2 * MS] * 3, (1 * MS, 16 * MS, 0))

    medians = dict(zip(PHASES, (values[0] for values in latencies.quantiles([0.5])), strict=True))
    expected = {"request": 20 * MS, "queue": 2 * MS, "compute_input": MS, "compute_infer": 16 * MS, "compute_output": 0}
    assert medians == pytest.approx(expected, rel=0.01)


def add(quantiles: SlidingQuantiles, now: float, *durations: int) -> None:
    quantiles.add(now, durations, [0] * len(durations), (0, 0, 0))


@pytest.mark.parametrize("largest", [100, 10_000, 10**10, 10**13])
def test_quantiles_are_within_one_percent(largest: int) -> None:
    chance = random.Random(7)
    durations = [chance.randrange(largest) for _ in range(1001)]
    quantiles = SlidingQuantiles()
    add(quantiles, 0.0, *durations)

    result, *_ = quantiles.values(0.0, [0.0, 0.5, 0.9, 0.999, 1.0])

    exact = sorted(durations)
    assert result == pytest.approx([exact[rank] for rank in (0, 500, 900, 999, 1000)], rel=0.01, abs=0.5)


def test_quantiles_forget_what_is_older_than_a_minute() -> None:
    quantiles = SlidingQuantiles()
    add(quantiles, 0.0, 100)
    add(quantiles, 50.0, 200, 200, 200)

    assert quantiles.values(59.9, [0.01, 1.0])[0] == pytest.approx([100, 200], rel=0.01)
    assert quantiles.values(60.0, [0.01, 1.0])[0] == pytest.approx([200, 200], rel=0.01)
    assert all(map(math.isnan, quantiles.values(110.0, [0.01, 1.0])[0]))


def test_quantiles_under_load_keep_no_more_than_twelve_slices_of_time() -> None:
    quantiles = SlidingQuantiles()

    for tenth in range(2000):
        add(quantiles, tenth / 10, 1000 + tenth)

    assert len(quantiles._slices) <= 12


def test_of_nothing_there_is_no_quantile() -> None:
    assert all(math.isnan(value) for (value,) in SlidingQuantiles().values(1.0, [0.5]))


def test_the_distributions_of_all_phases_can_be_read_for_rates() -> None:
    latencies = Latencies(LatencyPlan(bounds=((0.010, 0.020),) * len(PHASES)))
    assert isinstance(latencies, KeepsDistributions)

    latencies.answered([15 * MS], [5 * MS], (1 * MS, 25 * MS, 15 * MS))

    bounds = (0.010, 0.020)
    assert latencies.distributions() == [
        (bounds, (0, 1, 0)), (bounds, (1, 0, 0)), (bounds, (1, 0, 0)), (bounds, (0, 0, 1)), (bounds, (0, 1, 0)),
    ]  # fmt: skip


def test_the_output_of_a_model_in_python_is_not_in_the_first_bucket_and_a_search_takes_five_comparisons() -> None:
    histogram = LatencyHistogram(BOUNDS)

    histogram.add(24_000)

    assert histogram.counts[:3] == [0, 1, 0]
    assert len(BOUNDS) < 2**5

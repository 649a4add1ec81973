"""Durations in the statistics extension."""

import pytest

from naiad_kit.frontends.statistics import durations
from naiad_statistics.reports import BatchStatistics, Duration, ResponseStatistics


def test_each_duration_has_its_count_and_nanoseconds() -> None:
    batch = BatchStatistics(2, Duration(1, 2), Duration(3, 4), Duration(5, 6))

    assert durations(batch) == {
        "compute_input": {"count": 1, "ns": 2},
        "compute_infer": {"count": 3, "ns": 4},
        "compute_output": {"count": 5, "ns": 6},
    }


@pytest.mark.parametrize("name", ["compute_infer", "compute_output", "success", "fail", "empty_response", "cancel"])
def test_a_response_has_durations_of_its_own(name: str) -> None:
    message = durations(ResponseStatistics(**{name: Duration(1, 2)}))

    assert {each: duration["ns"] for each, duration in message.items() if duration["count"]} == {name: 2}
    assert len(message) == 6

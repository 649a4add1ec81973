"""Which metrics are values_of: those that the options ask for, and none without samples."""

from pathlib import Path

import pytest

from naiad_kit.metrics import Distribution, Quantiles
from naiad_metrics.families import LATENCY_COUNTERS, LATENCY_SUMMARIES
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request
from naiad_testing.metric_values import ONE, collect, values_of

from .metered import running


async def test_summaries_and_the_first_response_are_reported_when_they_are_asked_for(
    tmp_path: Path, backend: FakeBackend
) -> None:
    config = ((("summary_latencies", True),), (("histogram_latencies", True),), (("quantiles", (0.5, 0.99)),))

    async with running(tmp_path, backend, metrics_config=config) as server:
        empty = values_of(server)
        await server.infer(request("m", 1))
        metrics = values_of(server)
        (statistics,) = server.statistics("m")
    async with running(tmp_path, backend) as server:
        plain = values_of(server)

    for family in LATENCY_SUMMARIES:
        summary = metrics[family.name][ONE]
        assert isinstance(summary, Quantiles)
        assert ([quantile for quantile, _ in summary.values], summary.count) == ([0.5, 0.99], 1)
        assert family.name not in plain
    request_times = metrics["nv_inference_request_summary_us"][ONE]
    assert isinstance(request_times, Quantiles)
    assert request_times.sum == statistics.success.ns / 1000
    assert dict(request_times.values)[0.5] == pytest.approx(request_times.sum, rel=0.01)
    assert "nan" in str(empty["nv_inference_request_summary_us"][ONE])
    first = metrics["nv_inference_first_response_histogram_ms"][ONE]
    assert isinstance(first, Distribution)
    assert (first.bounds, sum(first.counts)) == ((100, 500, 2000, 5000), 1)
    assert "nv_inference_first_response_histogram_ms" not in plain


async def test_latency_counters_can_be_left_out_and_the_other_counters_stay(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with running(tmp_path, backend, metrics_config=((("counter_latencies", False),),)) as server:
        await server.infer(request("m", 1))
        metrics = values_of(server)

    assert not {family.name for family in LATENCY_COUNTERS} & set(metrics)
    assert metrics["nv_inference_request_success"] == {ONE: 1}


async def test_switched_off_metrics_are_absent_and_the_statistics_count_on(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with running(tmp_path, backend, allow_metrics=False) as server:
        await server.infer(request("m", 1))

        assert collect(server) == []
        assert server.statistics("m")[0].success.count == 1


async def test_buckets_of_a_metric_that_there_is_not_are_warned_of_once(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    control = 'metric_identifier { family: "nv_requests" } histogram_options { buckets: [ 1 ] }'
    metrics = f"version_policy {{ all {{ }} }} model_metrics {{ metric_control {{ {control} }} }}"
    backend.write(tmp_path, "n", metrics, versions=(1, 2))

    async with running(tmp_path, backend):
        recorded = [record.getMessage() for record in caplog.records if "nv_requests" in record.getMessage()]

    assert ["model 'n' " in text for text in recorded] == [True]

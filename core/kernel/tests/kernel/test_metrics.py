"""The metrics of the models of a running server: counts, times, what waits and what executes."""

import asyncio
from pathlib import Path

import pytest

from naiad.errors import ModelFailedError
from naiad_kit.metrics import Distribution, MetricsApi
from naiad_metrics.families import LATENCY_HISTOGRAMS
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, rows
from naiad_testing.loops import turns
from naiad_testing.metric_values import ONE, collect, values_of, with_reason

from .metered import running


async def test_counters_equal_the_statistics(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "m", "max_batch_size: 8")

    async with running(tmp_path, backend) as server:
        await server.infer(rows("m", 1, 2, 3))
        await server.infer(rows("m", 1))
        backend.answer = lambda batch: [ModelFailedError("no")]
        with pytest.raises(ModelFailedError):
            await server.infer(rows("m", 1))
        metrics = values_of(server)
        (statistics,) = server.statistics("m")

    assert metrics["nv_inference_request_success"] == {ONE: statistics.success.count} == {ONE: 2}
    assert metrics["nv_inference_count"] == {ONE: statistics.inference_count} == {ONE: 4}
    assert metrics["nv_inference_exec_count"] == {ONE: statistics.execution_count} == {ONE: 3}
    assert metrics["nv_inference_request_duration_us"] == {ONE: statistics.success.ns // 1000}
    assert metrics["nv_inference_queue_duration_us"] == {ONE: statistics.queue.ns // 1000}
    assert metrics["nv_inference_compute_infer_duration_us"] == {ONE: statistics.compute_infer.ns // 1000}
    assert metrics["nv_inference_request_failure"] == {
        with_reason("REJECTED"): 0,
        with_reason("CANCELED"): 0,
        with_reason("BACKEND"): statistics.fail.count,
        with_reason("OTHER"): 0,
    }
    assert metrics["naiad_batches_closed_total"] == {with_reason("single"): 3}


async def test_histograms_are_kept_of_every_phase_and_of_batch_sizes(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "m", "max_batch_size: 8")

    async with running(tmp_path, backend) as server:
        await server.infer(rows("m", 1, 2, 3))
        await server.infer(rows("m", 1))
        metrics = values_of(server)
        (statistics,) = server.statistics("m")

    for family in LATENCY_HISTOGRAMS:
        histogram = metrics[family.name][ONE]
        assert isinstance(histogram, Distribution)
        assert sum(histogram.counts) == 2
    request_times = metrics["naiad_request_duration_seconds"][ONE]
    assert isinstance(request_times, Distribution)
    assert request_times.sum == statistics.success.ns / 1e9
    sizes = metrics["naiad_batch_size"][ONE]
    assert sizes == Distribution((1, 2, 4, 8, 16, 32, 64, 128, 256, 512), [1, 0, 1, *[0] * 8], 4)


async def test_what_waits_is_pending_and_what_executes_is_in_flight(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        backend.hold()
        calls = [asyncio.ensure_future(server.infer(request("m", number))) for number in range(3)]
        await off_the_loop(backend.wait_until_held)
        meanwhile = values_of(server)
        calls[2].cancel()
        await turns()
        after_a_caller_left = values_of(server)
        calls[0].cancel()
        await turns()
        backend.release()
        await calls[1]
        finally_ = values_of(server)

    pending, depth = "nv_inference_pending_request_count", "naiad_queue_depth"
    assert [each[pending][ONE] for each in (meanwhile, after_a_caller_left, finally_)] == [2, 1, 0]
    assert [each[depth][ONE] for each in (meanwhile, after_a_caller_left, finally_)] == [2, 1, 0]
    assert [each["naiad_requests_in_flight"][ONE] for each in (meanwhile, finally_)] == [3, 0]
    busy = [each["naiad_instance_busy_seconds"][ONE | {("instance", "m_0")}] for each in (meanwhile, finally_)]
    assert (busy[0] > 0, busy[1]) == (True, 0)
    assert finally_["naiad_requests_cancelled_total"] == {
        ONE | {("state", "waiting")}: 1,
        ONE | {("state", "executing")}: 1,
    }
    assert finally_["nv_inference_request_failure"][with_reason("CANCELED")] == 2


async def test_a_scrape_tells_what_collecting_tells_and_lets_others_run_meanwhile(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("naiad_metrics.service.TURN", 0.0)
    backend.write(tmp_path, "n")
    turns_of_others: list[int] = []

    async with running(tmp_path, backend) as server:
        scraping = asyncio.ensure_future(server.service(MetricsApi).scrape())
        while not scraping.done():
            turns_of_others.append(1)
            await asyncio.sleep(0)
        scraped = await scraping
        models = [family for family in collect(server) if "inference" in family.name]

    assert [family for family in scraped if "inference" in family.name] == models
    assert len(turns_of_others) >= 2


async def test_instances_are_notified_with_their_states(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "m", 'instance_group [ { count: 2 }, { name: "m_0" } ]')

    async with running(tmp_path, backend) as server:
        states = values_of(server)["naiad_instance_state"]

    for name in ("m_0_0", "m_0_1", "m_0_0 (2)"):
        results = {dict(labels)["state"]: value for labels, value in states.items() if ("instance", name) in labels}
        assert results == {"READY": 1, "STARTING": 0, "DEAD": 0}


async def test_every_version_is_reported_with_the_tags_of_its_model(tmp_path: Path, backend: FakeBackend) -> None:
    tags = 'metric_tags { key: "team" value: "a \\"b\\"" } metric_tags { key: "cost-centre" value: "7" }'
    backend.write(tmp_path, "m", f"version_policy {{ all {{ }} }} {tags}", versions=(1, 2))

    async with running(tmp_path, backend) as server:
        counts = values_of(server)["nv_inference_count"]

    of_all = {("model", "m"), ("_team", 'a "b"'), ("_cost_centre", "7")}
    assert set(counts) == {frozenset({*of_all, ("version", version)}) for version in ("1", "2")}


async def test_metrics_of_a_model_are_there_while_it_serves(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend, model_control_mode="explicit") as server:
        before = values_of(server)
        await server.load("m")
        loaded = values_of(server)
        await server.unload("m")
        after = values_of(server)

    assert "nv_inference_count" not in before
    assert loaded["nv_inference_count"] == {ONE: 0}
    assert set(loaded["nv_inference_request_failure"].values()) == {0}
    assert loaded["nv_model_load_duration_secs"][ONE] > 0
    assert not any(labels >= ONE for values in after.values() for labels in values)

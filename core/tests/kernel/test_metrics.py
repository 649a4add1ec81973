"""The metrics of a running server: what is told of its models, of the machine, and of what models make themselves."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from naiad import Server
from naiad._kernel.metrics.collector import Metrics
from naiad._kernel.metrics.families import FAMILIES, GPU, LATENCY_COUNTERS, LATENCY_HISTOGRAMS, LATENCY_SUMMARIES
from naiad._kernel.metrics.nvml import GpuReading
from naiad._kernel.metrics.options import MetricsConfig
from naiad._kernel.metrics.series import MetricStore
from naiad.backend import Answer, Batch, ModelContext, Placement
from naiad.errors import ModelFailedError
from naiad.metrics import Distribution, MetricFamily, Quantiles
from naiad.testing.backends import FakeBackend

from .loops import turns, until
from .serving import Steered, SteeredModel, off_the_loop, request, rows, running, write_model

ONE = frozenset({("model", "m"), ("version", "1")})
Value = float | Distribution | Quantiles
Told = dict[str, dict[frozenset[tuple[str, str]], Value]]


def told(server: Server) -> Told:
    """Every value by name and labels, each of which must be told once."""
    collected = server.metrics.collect()
    values = {family.name: {frozenset(each.labels): each.value for each in family.samples} for family in collected}
    assert len(values) == len(collected)
    assert sum(map(len, values.values())) == sum(len(family.samples) for family in collected)
    return values


def with_reason(reason: str) -> frozenset[tuple[str, str]]:
    return ONE | {("reason", reason)}


async def test_counters_equal_the_statistics(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "m", "max_batch_size: 8")

    async with running(tmp_path, backend) as server:
        await server.infer(rows("m", 1, 2, 3))
        await server.infer(rows("m", 1))
        backend.answer = lambda batch: [ModelFailedError("no")]
        with pytest.raises(ModelFailedError):
            await server.infer(rows("m", 1))
        metrics = told(server)
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
        metrics = told(server)
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
        meanwhile = told(server)
        calls[2].cancel()
        await turns()
        after_a_caller_left = told(server)
        calls[0].cancel()
        await turns()
        backend.release()
        await calls[1]
        finally_ = told(server)

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
    monkeypatch.setattr("naiad._kernel.metrics.collector.TURN", 0.0)
    backend.write(tmp_path, "n")
    turns_of_others: list[int] = []

    async with running(tmp_path, backend) as server:
        scraping = asyncio.ensure_future(server.metrics.scrape())
        while not scraping.done():
            turns_of_others.append(1)
            await asyncio.sleep(0)
        scraped = await scraping
        models = [family for family in server.metrics.collect() if "inference" in family.name]

    assert [family for family in scraped if "inference" in family.name] == models
    assert len(turns_of_others) >= 2


async def test_instances_are_told_with_their_states(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "m", 'instance_group [ { count: 2 }, { name: "m_0" } ]')

    async with running(tmp_path, backend) as server:
        states = told(server)["naiad_instance_state"]

    for name in ("m_0_0", "m_0_1", "m_0_0 (2)"):
        found = {dict(labels)["state"]: value for labels, value in states.items() if ("instance", name) in labels}
        assert found == {"READY": 1, "STARTING": 0, "DEAD": 0}


async def test_every_version_is_told_with_the_tags_of_its_model(tmp_path: Path, backend: FakeBackend) -> None:
    tags = 'metric_tags { key: "team" value: "a \\"b\\"" } metric_tags { key: "cost-centre" value: "7" }'
    backend.write(tmp_path, "m", f"version_policy {{ all {{ }} }} {tags}", versions=(1, 2))

    async with running(tmp_path, backend) as server:
        counts = told(server)["nv_inference_count"]

    of_all = {("model", "m"), ("_team", 'a "b"'), ("_cost_centre", "7")}
    assert set(counts) == {frozenset({*of_all, ("version", version)}) for version in ("1", "2")}


async def test_metrics_of_a_model_are_there_while_it_serves(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend, model_control_mode="explicit") as server:
        before = told(server)
        await server.load("m")
        loaded = told(server)
        await server.unload("m")
        after = told(server)

    assert "nv_inference_count" not in before
    assert loaded["nv_inference_count"] == {ONE: 0}
    assert set(loaded["nv_inference_request_failure"].values()) == {0}
    assert loaded["nv_model_load_duration_secs"][ONE] > 0
    assert not any(labels >= ONE for values in after.values() for labels in values)


async def test_summaries_and_the_first_response_are_told_when_they_are_asked_for(
    tmp_path: Path, backend: FakeBackend
) -> None:
    config = ((("summary_latencies", True),), (("histogram_latencies", True),), (("quantiles", (0.5, 0.99)),))

    async with running(tmp_path, backend, metrics_config=config) as server:
        empty = told(server)
        await server.infer(request("m", 1))
        metrics = told(server)
        (statistics,) = server.statistics("m")
    async with running(tmp_path, backend) as server:
        plain = told(server)

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
        metrics = told(server)

    assert not {family.name for family in LATENCY_COUNTERS} & set(metrics)
    assert metrics["nv_inference_request_success"] == {ONE: 1}


async def test_switched_off_metrics_tell_nothing_and_the_statistics_count_on(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with running(tmp_path, backend, allow_metrics=False) as server:
        await server.infer(request("m", 1))

        assert server.metrics.collect() == []
        assert server.statistics("m")[0].success.count == 1


async def test_the_machine_is_told_unless_that_is_switched_off(tmp_path: Path, backend: FakeBackend) -> None:
    cpu = {"nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes"}
    always = {"nv_pinned_memory_pool_total_bytes", "nv_pinned_memory_pool_used_bytes", "naiad_process_memory_bytes"}

    async with running(tmp_path, backend) as server:
        on = told(server)
    async with running(tmp_path, backend, allow_cpu_metrics=False) as server:
        off = told(server)

    assert cpu | always <= set(on)
    assert set(on) - set(off) == cpu
    assert all(list(on[name]) == [frozenset()] for name in cpu)


def gpus(metrics: Metrics) -> Told:
    names = {family.name for family in GPU}
    return {
        family.name: {frozenset(each.labels): each.value for each in family.samples}
        for family in metrics.collect()
        if family.name in names
    }


async def test_gpus_are_told_as_of_the_last_look_at_them() -> None:
    looks: list[int] = []

    def look() -> tuple[GpuReading, ...]:
        looks.append(1)
        return (GpuReading("GPU-1", utilization=0.5, energy=12.5), GpuReading("GPU-2", utilization=0.0))

    metrics = Metrics(MetricsConfig(), list, MetricStore(), look)

    nothing = gpus(metrics)
    await metrics.scrape()
    await metrics.scrape()

    one, other = frozenset({("gpu_uuid", "GPU-1")}), frozenset({("gpu_uuid", "GPU-2")})
    assert nothing == {}
    assert gpus(metrics) == {"nv_gpu_utilization": {one: 0.5, other: 0.0}, "nv_energy_consumption": {one: 12.5}}
    assert len(looks) == 1


@pytest.mark.parametrize("config", [MetricsConfig(gpu=False), MetricsConfig(enabled=False)])
async def test_gpus_are_not_looked_at_when_that_is_switched_off(config: MetricsConfig) -> None:
    metrics = Metrics(config, list, MetricStore(), lambda: pytest.fail("it looked"))

    await metrics.scrape()

    assert gpus(metrics) == {}


async def test_what_is_executed_on_a_gpu_is_told_by_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("loading", "metrics.versions"):
        monkeypatch.setattr(f"naiad._kernel.{module}.gpu_uuids", lambda: ("GPU-a", "GPU-b"))
    monkeypatch.setattr("naiad._kernel.loading.gpu_count", lambda: 2)
    backend = Steered()
    write_model(tmp_path, "m", FLOATS_ON_GPUS)

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        metrics = told(server)

    on = {uuid: ONE | {("gpu_uuid", uuid)} for uuid in ("GPU-a", "GPU-b")}
    counts = metrics["nv_inference_count"]
    assert (set(counts), sum(counts.values())) == (set(on.values()), 1)
    assert set(metrics["naiad_request_duration_seconds"]) == set(on.values())
    assert set(metrics["nv_inference_pending_request_count"]) == {ONE}
    instances = [dict(labels) for labels in metrics["naiad_instance_busy_seconds"]]
    assert [(labels["instance"], labels["gpu"]) for labels in instances] == [("m_0_0", "0"), ("m_0_0", "1")]
    assert with_reason("OTHER") in metrics["nv_inference_request_failure"]


FLOATS_ON_GPUS = """
input [ { name: "INPUT", data_type: TYPE_FP32, dims: [ -1 ] } ]
output [ { name: "OUTPUT", data_type: TYPE_FP32, dims: [ -1 ] } ]
instance_group [ { kind: KIND_GPU, gpus: [ 0, 1 ] } ]
"""


class Counting(SteeredModel):
    """A model that counts its batches."""

    def __init__(self, backend: Steered, context: ModelContext) -> None:
        super().__init__(backend)
        self._batches = context.metrics.family("batches", "Batches so far", "counter").metric({"of": "Counting"})

    def instantiate(self, placement: Placement) -> Any:
        counter = self._batches

        class Instance:
            def execute(self, batch: Batch) -> Answer:
                counter.increment()
                return {"OUTPUT": batch.input("INPUT")}

            def close(self) -> None:
                return None

        return Instance()


async def test_what_a_model_counts_is_told_until_it_is_closed(tmp_path: Path) -> None:
    backend = Steered(load=lambda context: Counting(backend, context))
    write_model(tmp_path, "m")

    async with running(tmp_path, backend, model_control_mode="explicit", load_model=("m",)) as server:
        await server.infer(request("m", 1))
        counted = told(server)["batches"]
        await server.unload("m")
        await until(lambda: "batches" not in told(server))

    assert counted == {frozenset({("of", "Counting")}): 1}


async def test_a_model_that_fails_to_load_leaves_no_metrics(tmp_path: Path) -> None:
    def load(context: ModelContext) -> SteeredModel:
        context.metrics.family("loads", "", "counter").metric().increment()
        raise ValueError("no")

    write_model(tmp_path, "m")

    async with running(tmp_path, Steered(load=load)) as server:
        assert "loads" not in told(server)


async def test_a_model_cannot_take_a_name_of_the_servers(tmp_path: Path) -> None:
    def load(context: ModelContext) -> SteeredModel:
        context.metrics.family("nv_inference_count", "", "counter")
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        assert "'nv_inference_count', which the server uses" in server.index()[0].reason


def test_every_family_has_a_name_of_its_own_a_help_and_a_unit_where_it_needs_one() -> None:
    names = [family.name for family in FAMILIES]

    assert len(set(names)) == len(names)
    assert all(family.help and not family.help.endswith(".") for family in FAMILIES)
    assert all(family.name.startswith(("nv_", "naiad_")) for family in FAMILIES)


def test_a_family_without_samples_is_not_told() -> None:
    metrics = Metrics(MetricsConfig(), list, MetricStore())

    collected: list[MetricFamily] = metrics.collect()

    assert all(family.samples for family in collected)
    assert "nv_inference_count" not in {family.name for family in collected}

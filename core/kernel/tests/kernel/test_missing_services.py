"""A server without metrics, model calls or a tracer: it serves, and says what to install for the rest."""

from pathlib import Path

import pytest

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.hookspecs import hookimpl
from naiad_kit.calls import models_of
from naiad_kit.metrics import MetricsApi, metrics_of
from naiad_kit.model_metrics import registry_of
from naiad_kit.tracing import tracing_of
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running, write_model
from naiad_testing.steered import Steered, SteeredModel
from naiad_testing.tracing import FakeTracing


async def test_the_metrics_service_is_answered_with_what_to_install(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        with pytest.raises(UnsupportedError, match="It comes with naiad-metrics: pip install"):
            server.service(MetricsApi)
        assert metrics_of(server) is None


async def test_statistics_are_counted_and_no_latency_is_observed(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        (report,) = server.version_reports()
        (statistics,) = server.statistics("m")

    (device,) = report.devices
    assert (report.name, report.version, device.requests, device.executions) == ("m", 1, 1, 1)
    assert (device.observer, device.success_ns) == (None, statistics.success.ns)


async def test_a_model_that_makes_metrics_gets_a_registry_of_its_own(tmp_path: Path) -> None:
    values: list[float] = []

    def load(context: ModelContext) -> SteeredModel:
        family = registry_of(context).family("seen", "Requests seen", "counter")
        family.metric({"of": "m"}).increment(2)
        values.append(family.metric({"of": "m"}).value())
        with pytest.raises(InvalidArgumentError, match="seen"):
            family.metric().increment(-1)
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))

    assert values == [2]


async def test_reports_of_versions_are_made_one_after_the_other(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "n")

    async with running(tmp_path, backend) as server:
        reports = server.version_reports()
        first = next(reports)
        await server.infer(request("n", 1))
        second = next(reports)

    assert [(each.name, each.devices[0].requests) for each in (first, second)] == [("m", 0), ("n", 1)]


async def test_calls_are_refused_with_what_to_install(tmp_path: Path) -> None:
    contexts: list[ModelContext] = []

    def load(context: ModelContext) -> SteeredModel:
        contexts.append(context)
        return SteeredModel(backend)

    backend = Steered(load=load)
    write_model(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        models = models_of(contexts[0]).within([])
        for call in (
            lambda: models.infer(request("m", 1)),
            lambda: models.begin(request("m", 1)),
            lambda: models.stream(request("m", 1)),
            lambda: models.ready("m"),
            lambda: models.load("m"),
            lambda: models.unload("m"),
        ):
            with pytest.raises(UnsupportedError, match=r"cannot .*: pip install .*model-calls'"):
                call()

        assert (await server.infer(request("m", 1))).outputs["OUTPUT"].array.tolist() == [1]


class TracingPlugin(FakeTracing):
    """A fake tracer that is its own plugin."""

    @hookimpl
    def naiad_services(self, settings):
        return [self]


async def test_without_a_tracer_nothing_is_traced_and_the_settings_say_what_to_install(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        tracing = tracing_of(server)
        sampled = tracing.sample("m", 1, "7") if tracing.active else None
        await server.infer(request("m", 1, trace=sampled))
        with pytest.raises(UnsupportedError, match="It comes with naiad-tracing: pip install"):
            tracing.settings()
        with pytest.raises(UnsupportedError, match="It comes with naiad-tracing: pip install"):
            tracing.update({"trace_rate": ["1"]})

        assert (sampled, "trace" in server.metadata().extensions) == (None, False)


async def test_the_trace_extension_is_there_where_a_tracer_is(tmp_path: Path) -> None:
    tracer = TracingPlugin()

    async with running(tmp_path, tracer) as server:
        assert tracing_of(server) is tracer
        assert "trace" in server.metadata().extensions

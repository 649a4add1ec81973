"""A server without a metrics service: no latency is observed, and metrics of models need a registry of their own."""

from pathlib import Path

import pytest

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_kit.metrics import MetricsApi, metrics_of
from naiad_kit.model_metrics import registry_of
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running, write_model
from naiad_testing.steered import Steered, SteeredModel


async def test_the_metrics_service_is_answered_with_what_to_install(tmp_path: Path, backend: FakeBackend) -> None:
    async with running(tmp_path, backend) as server:
        with pytest.raises(UnsupportedError, match="pip install 'naiad-metrics'"):
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
        with pytest.raises(InvalidArgumentError, match="can only go up"):
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

"""Execution gates of a server: made for its settings, asked for each version, closed with it, and shown in metrics."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from naiad import Server
from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, PluginError
from naiad.extend import GateFactory
from naiad.hookspecs import hookimpl
from naiad.options import Settings
from naiad_kit.metrics import MetricFamily, Sample
from naiad_kit.model_metrics import registry_of
from naiad_testing.backends import FakeBackend
from naiad_testing.gates import FakeGates
from naiad_testing.in_loop import request, write_model
from naiad_testing.loops import turns
from naiad_testing.metric_values import collect
from naiad_testing.steered import Steered, SteeredModel

from .metered import running

USERS = MetricFamily("gate_users", "Users of the gate", "gauge", [Sample((), 3)])


async def test_each_version_executes_behind_its_own_gate(tmp_path: Path, backend: FakeBackend) -> None:
    gates = FakeGates(open_=0)

    async with running(tmp_path, backend, gates) as server:
        answer = asyncio.ensure_future(server.infer(request("m", 1)))
        await turns()
        waiting = dict(gates.gates["m"].wanting), list(backend.batches)
        gates.gates["m"].open = 1
        gates.gates["m"].grant()
        await answer

    assert (list(waiting[0]), waiting[1]) == ([0], [])
    assert gates.gates["m"].executions == [0]
    assert gates.gates["m"].closed
    assert gates.settings is server.settings


async def test_a_version_that_the_gates_refuse_does_not_load(tmp_path: Path, backend: FakeBackend) -> None:
    gates = FakeGates()

    async with running(tmp_path, backend, gates, model_control_mode="explicit") as server:
        gates.failure = InvalidArgumentError("it could never execute")
        with pytest.raises(InvalidArgumentError, match="it could never execute"):
            await server.load("m")

    assert not any(event.startswith("instantiate") for event in backend.events)


async def test_metrics_of_gates_are_collected(tmp_path: Path, backend: FakeBackend) -> None:
    gates = FakeGates()
    gates.families = [USERS]

    async with running(tmp_path, backend, gates) as server:
        collected = collect(server)
        gates.families = [MetricFamily(USERS.name, USERS.help, USERS.kind, [])]
        empty = collect(server)

    assert USERS in collected
    assert USERS.name not in [family.name for family in empty]


async def test_a_model_cannot_take_a_name_of_the_gates(tmp_path: Path) -> None:
    def load(context: ModelContext) -> SteeredModel:
        registry_of(context).family(USERS.name, "Mine", "counter")
        return SteeredModel(backend)

    gates, backend = FakeGates(), Steered(load=load)
    gates.families = [USERS]
    write_model(tmp_path, "m")

    async with running(tmp_path, backend, gates) as server:
        assert "'gate_users', which the server uses" in server.index()[0].reason


async def test_gates_whose_metrics_fail_take_no_others_along(
    tmp_path: Path, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    gates = FakeGates()

    async with running(tmp_path, backend, gates) as server:
        gates.failure = SystemExit(3)
        collected = collect(server)

    assert collected
    assert "reading the metrics of a FakeGates failed" in caplog.text


async def test_two_plugins_with_gates_are_refused_naming_both(tmp_path: Path) -> None:
    class Others(FakeGates):
        pass

    with pytest.raises(PluginError, match="plugin 'FakeGates' and plugin 'Others' both offer the gate 'execution'"):
        await Server(model_repository=[tmp_path], plugins=[FakeGates(), Others()]).start()


async def test_a_plugin_whose_gates_cannot_be_made_is_named(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def naiad_gates(self, settings: Settings) -> Sequence[GateFactory]:
            raise SystemExit(settings["id"])

    with pytest.raises(PluginError, match=r"naiad_gates of plugin 'Broken'.*SystemExit"):
        await Server(model_repository=[tmp_path], plugins=[Broken()]).start()

"""Servables whose code raises on the event loop: the error is contained, and their leases are released."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from naiad import Server
from naiad.backend import Placement
from naiad.errors import InternalError, InvalidArgumentError
from naiad.extend import StageContext, Submit
from naiad.frontend import Frontend
from naiad.hookspecs import hookimpl
from naiad.servables import Servable
from naiad_config import ModelConfig
from naiad_kit.metrics import metrics_of_plugins
from naiad_testing.gates import FakeGate, FakeGates
from naiad_testing.in_loop import FLOATS, request, running, write_model
from naiad_testing.loops import until
from naiad_testing.servables import FakeServables
from naiad_testing.steered import Steered

from .control import explicit

RAISED = [ArithmeticError, SystemExit, asyncio.CancelledError]

pytestmark = pytest.mark.parametrize("kind", RAISED)


class Failing(FakeServables):
    """Aliases of which one method or property raises, in every call."""

    def __init__(self, member: str, kind: type[BaseException]) -> None:
        super().__init__()
        self.member, self.kind = member, kind

    def prepare(self, context: Any) -> Any:
        return _Prepared(self, super().prepare(context))


class _Prepared:
    def __init__(self, factory: Failing, prepared: Any) -> None:
        self._factory, self._prepared = factory, prepared
        self.dependencies = prepared.dependencies

    def bind(self, models: Any, earlier: Mapping[int, Servable]) -> dict[int, Any]:
        bound = self._prepared.bind(models, earlier)
        return {version: _Raising(self._factory, servable) for version, servable in bound.items()}


class _Raising:
    """A servable that is another one but for one member."""

    def __init__(self, factory: Failing, servable: Any) -> None:
        self._factory, self._servable = factory, servable

    def __getattr__(self, name: str) -> Any:
        if name != self._factory.member:
            return getattr(self._servable, name)
        error = self._factory.kind("a plugin failed")
        if name in ("drain", "close"):

            async def fail(*arguments: object) -> None:
                raise error

            return fail
        raise error


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The model m, and the alias a of it."""
    write_model(tmp_path, "m")
    key = 'parameters { key: "target" value { string_value: "m" } }'
    write_model(tmp_path, "a")
    (tmp_path / "a" / "config.pbtxt").write_text(f'platform: "alias" {FLOATS} {key}')
    return tmp_path


def state(server: Server, name: str) -> str:
    return next(entry.state for entry in server.index() if entry.name == name)


@pytest.mark.parametrize("member", ["drain", "close"])
async def test_a_servable_that_raises_at_its_end_keeps_no_leases(
    repository: Path, member: str, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async with explicit(repository, Steered(), Failing(member, kind), load_model=("*",)) as server:
        await server.unload("a")
        await server.unload("m")
        await until(lambda: state(server, "m") == state(server, "a") == "UNAVAILABLE")

    step = {"drain": "draining", "close": "closing"}[member]
    assert f"{step} model 'a' version 1 failed" in caplog.messages


@pytest.mark.parametrize("member", ["drain", "close", "outstanding"])
async def test_a_server_stops_over_a_servable_that_raises(
    repository: Path, member: str, kind: type[BaseException]
) -> None:
    async with running(repository, Steered(), Failing(member, kind)) as server:
        ended = await server.stop()

    assert ended is (member != "close")
    assert not server.live()


async def test_a_request_to_a_servable_that_raises_fails(repository: Path, kind: type[BaseException]) -> None:
    async with running(repository, Steered(), Failing("submit", kind)) as server:
        with pytest.raises(InternalError, match="submitting to model 'a' version 1 failed"):
            await server.infer(request("a", 1.0))

        assert (await server.infer(request("m", 1.0))).outputs["OUTPUT"].array.tolist() == [1.0]


async def test_a_servable_whose_readiness_raises_is_not_ready(repository: Path, kind: type[BaseException]) -> None:
    async with running(repository, Steered(), Failing("readiness", kind)) as server:
        assert not server.model_ready("a").ready
        assert not server.ready().ready
        assert server.model_ready("m").ready


async def test_instances_that_a_servable_cannot_report_are_an_internal_error(
    repository: Path, kind: type[BaseException]
) -> None:
    async with running(repository, Steered(), Failing("instances", kind)) as server:
        with pytest.raises(InternalError, match=f"model 'a' version 1 failed: {kind.__name__}"):
            server.instances("a")


@pytest.mark.parametrize("member", ["statistics", "waiting", "outstanding", "instances"])
async def test_reports_on_all_models_leave_out_a_servable_that_raises(
    repository: Path, member: str, kind: type[BaseException]
) -> None:
    async with running(repository, Steered(), Failing(member, kind)) as server:
        names = [each.name for each in (server.statistics() if member == "statistics" else server.version_reports())]

    assert names == ["m"]


async def test_a_servable_whose_sticky_routes_raise_has_none(repository: Path, kind: type[BaseException]) -> None:
    async with explicit(repository, Steered(), Failing("sticky", kind), load_model=("*",)) as server:
        await server.unload("a")
        await until(lambda: state(server, "a") == "UNAVAILABLE")


class FailingStage:
    """A request stage of which one member raises; the others hold nothing."""

    name, order, parameter, host_only = "failing", 0, "", False

    def __init__(self, member: str, kind: type[BaseException]) -> None:
        self._member, self._kind = member, kind

    @hookimpl
    def naiad_stages(self, context: StageContext) -> Sequence[Any]:
        return [self]

    def wrap(self, submit: Submit) -> Submit:
        self._perhaps("wrap")
        return submit

    @property
    def outstanding(self) -> int:
        self._perhaps("outstanding")
        return 0

    async def drained(self) -> None:
        self._perhaps("drained")

    def fail_all(self, error: object) -> None:
        self._perhaps("fail_all")

    def _perhaps(self, member: str) -> None:
        if member == self._member:
            raise self._kind("a stage failed")


@pytest.mark.parametrize("member", ["outstanding", "drained", "fail_all"])
async def test_a_version_ends_over_a_stage_that_raises(
    repository: Path, member: str, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async with explicit(
        repository, Steered(), FakeServables(), FailingStage(member, kind), load_model=("*",)
    ) as server:
        await server.unload("m")
        await until(lambda: state(server, "m") == "UNAVAILABLE")

    assert any(record.name == "naiad.model" and record.levelno == logging.ERROR for record in caplog.records)


async def test_a_stage_that_raises_when_it_is_put_around_a_version_fails_the_load(
    repository: Path, kind: type[BaseException]
) -> None:
    async with explicit(repository, Steered(), FailingStage("wrap", kind)) as server:
        with pytest.raises(InvalidArgumentError, match=f"^failed to load 'm', .*'m'.*{kind.__name__}"):
            await server.load("m")


class FailingGates:
    """A gate factory that raises when a version asks for its gate."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind

    @hookimpl
    def naiad_gates(self, settings: object) -> Sequence[Any]:
        return [self]

    def admit(self, config: object, placements: object) -> None:
        raise self._kind("no gate")

    def metrics(self) -> Sequence[Any]:
        raise self._kind("no metrics")


async def test_a_gate_factory_that_raises_fails_the_load_alone(repository: Path, kind: type[BaseException]) -> None:
    async with explicit(repository, Steered(), FailingGates(kind)) as server:
        with pytest.raises(InvalidArgumentError, match=f"^failed to load 'm', .*'m'.*{kind.__name__}"):
            await server.load("m")

        assert metrics_of_plugins(server) == []
        assert server.live()


class FailingGate(FakeGate):
    """A gate that raises when its version has ended."""

    kind: type[BaseException] = ArithmeticError

    def close(self) -> None:
        raise self.kind("a gate failed")


class GatesThatFailToClose(FakeGates):
    def admit(self, config: ModelConfig, placements: Sequence[Placement]) -> FakeGate:
        return FailingGate(self.open)


async def test_a_version_ends_over_a_gate_that_raises(
    repository: Path, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(FailingGate, "kind", kind)

    async with explicit(repository, Steered(), GatesThatFailToClose()) as server:
        await server.load("m")
        await server.unload("m")
        await until(lambda: state(server, "m") == "UNAVAILABLE")

    assert "closing the execution gate of model 'm' failed" in caplog.messages


class FailingFrontend:
    """A frontend of which one method raises."""

    name = "failing"

    def __init__(self, member: str, kind: type[BaseException]) -> None:
        self._member, self._kind = member, kind

    @hookimpl
    def naiad_frontends(self) -> Sequence[Frontend]:
        return [self]

    async def start(self, server: object) -> str:
        self._perhaps("start")
        return ""

    async def stop(self, grace: float) -> None:
        self._perhaps("stop")

    async def without_clients(self) -> None:
        self._perhaps("without_clients")

    def _perhaps(self, member: str) -> None:
        if member == self._member:
            raise self._kind("a frontend failed")


@pytest.mark.parametrize("member", ["stop", "without_clients"])
async def test_a_server_stops_over_a_frontend_that_raises(
    repository: Path, member: str, kind: type[BaseException]
) -> None:
    async with running(repository, Steered(), FakeServables(), FailingFrontend(member, kind)) as server:
        assert await server.stop(lame_duck=1.0)

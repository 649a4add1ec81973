"""Servables of plugins: who claims a configuration, how it is bound to the models that it uses, and leases on these."""

import asyncio
from pathlib import Path

import pytest

from naiad import Server
from naiad._lifecycle.leases import Leases
from naiad.errors import ModelNotReadyError, NaiadError
from naiad_testing.in_loop import request, running
from naiad_testing.loops import until
from naiad_testing.servables import FakeServables
from naiad_testing.steered import Steered

from .control import explicit

TENSORS = """
input { name: "INPUT" data_type: TYPE_FP32 dims: -1 }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: -1 }
"""


def write(root: Path, name: str, config: str) -> None:
    (root / name / "1").mkdir(parents=True, exist_ok=True)
    (root / name / "config.pbtxt").write_text(f"{TENSORS} {config}")


def alias(root: Path, name: str, target: str, platform: str = "alias") -> None:
    key = f'parameters {{ key: "target" value {{ string_value: "{target}" }} }}'
    write(root, name, f'platform: "{platform}" {key}')


def reason(server: Server, name: str) -> str:
    return next(entry.reason for entry in server.index() if entry.name == name)


def state(server: Server, name: str) -> str:
    return next(entry.state for entry in server.index() if entry.name == name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The model m, the alias a of it, and the alias b of that one."""
    write(tmp_path, "m", 'backend: "steered"')
    alias(tmp_path, "a", "m")
    alias(tmp_path, "b", "a")
    return tmp_path


async def test_a_factory_serves_what_it_claims_over_the_models_that_it_depends_on(repository: Path) -> None:
    servables = FakeServables()

    async with running(repository, Steered(), servables) as server:
        response = await server.infer(request("b", 1.0))

        assert response.outputs["OUTPUT"].array.tolist() == [1.0]
        assert server.ready().ready
        assert set(servables.bound) == {"a", "b"}


async def test_loading_a_dependent_loads_what_it_depends_on(repository: Path) -> None:
    async with explicit(repository, Steered(), FakeServables()) as server:
        await server.load("b")

        assert {entry.name: entry.state for entry in server.index()} == dict.fromkeys("abm", "READY")


async def test_dependents_are_bound_anew_in_the_order_in_which_they_depend(repository: Path) -> None:
    servables = FakeServables()

    async with explicit(repository, Steered(), servables, load_model=("*",)) as server:
        servables.bound.clear()
        (repository / "m" / "1" / "weights").write_text("new")
        await server.load("m")

        assert servables.bound == ["a", "b"]


async def test_dependents_go_out_of_service_with_what_they_depend_on_and_come_back_with_it(repository: Path) -> None:
    async with explicit(repository, Steered(), FakeServables(), load_model=("*",)) as server:
        await server.unload("m")
        gone, why = state(server, "b"), reason(server, "a")
        with pytest.raises(ModelNotReadyError):
            await server.infer(request("b", 1.0))
        await server.load("m")

        assert gone != "READY"
        assert "the target does not serve. Model 'm' was unloaded." in why
        assert (await server.infer(request("b", 1.0))).outputs["OUTPUT"].array.tolist() == [1.0]


async def test_a_version_ends_after_the_last_lease_on_it(repository: Path) -> None:
    servables = FakeServables()
    backend = Steered()

    async with explicit(repository, backend, servables, load_model=("*",)) as server:
        servables.drained = asyncio.Event()
        await server.unload("m")
        for _ in range(20):
            await asyncio.sleep(0)
        before = state(server, "m")
        servables.drained.set()
        await until(lambda: state(server, "m") == "UNAVAILABLE")

    assert before == "UNLOADING"


async def test_two_factories_that_claim_a_model_are_an_error_of_that_model(repository: Path) -> None:
    class Greedy(FakeServables):
        def claims(self, config: object) -> bool:
            return True

    async with running(repository, Steered(), FakeServables(), Greedy("greedy")) as server:
        assert "the servables 'alias' and 'greedy' both claim model 'a'; uninstall one of them" in reason(server, "a")


class Broken:
    """Prepared, and never bound."""

    dependencies = ("m",)

    def bind(self, models: object, earlier: object) -> None:
        raise ValueError("no idea")


class Undecided(Broken):
    """Does not say which models it depends on."""

    @property
    def dependencies(self) -> tuple[str, ...]:  # type: ignore[override]
        raise ValueError("no idea")


@pytest.mark.parametrize("where", ["prepare", "dependencies", "bind"])
async def test_a_factory_that_raises_fails_the_load_alone(repository: Path, where: str) -> None:
    class Failing(FakeServables):
        def prepare(self, context: object) -> Broken:  # type: ignore[override]
            if where != "prepare":
                return Broken() if where == "bind" else Undecided()
            raise ValueError("no idea")

    async with explicit(repository, Steered(), Failing()) as server:
        with pytest.raises(NaiadError, match="ValueError: no idea"):
            await server.load("a")
        await server.load("m")

        assert state(server, "m") == "READY"


async def test_leases_count_each_use_and_are_released_once() -> None:
    leases, version = Leases(), object()
    first, second = leases.take(version), leases.take(version)  # type: ignore[arg-type]
    waiting = asyncio.ensure_future(leases.released(version))  # type: ignore[arg-type]

    first.release()
    first.release()
    await asyncio.sleep(0)
    still = waiting.done()
    second.release()
    await waiting

    assert not still


async def test_a_version_without_leases_has_been_released() -> None:
    await Leases().released(object())  # type: ignore[arg-type]

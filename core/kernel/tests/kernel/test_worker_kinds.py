"""Which kind of worker a model gets."""

import threading
from pathlib import Path
from typing import Any

import pytest

from naiad import hookimpl
from naiad._engine.worker_kinds import hosted, worker_for
from naiad.backend import Backend, BackendTraits, ModelContext, Placement
from naiad.errors import InvalidArgumentError, PluginError
from naiad.extend import MakeWorker
from naiad.workers import ThreadKind, ThreadWorker
from naiad_config import ModelConfig, ModelParameter
from naiad_testing.fake_backend import FakeBackend
from naiad_testing.in_loop import FLOATS, request, running, write_model
from naiad_testing.steered import Steered, SteeredInstance
from naiad_testing.workers import check_workers

FRAMEWORKS = ["", "onnxruntime"]


class Counted(ThreadWorker[Any]):
    """A plugin's worker: a thread that notes its batches."""

    executed: int = 0

    def execute(self, item: Any) -> None:
        Counted.executed += 1
        super().execute(item)


class Counting:
    """A plugin with a kind of worker that models ask for as `counted`."""

    name = choice = "counted"

    @hookimpl
    def naiad_workers(self, runner: Any) -> Any:
        assert runner is None
        return [self]

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> Any:
        return Counted if execute_on == self.choice else None


def asking_for(execute_on: str) -> ModelConfig:
    return ModelConfig(name="m", parameters={"execute_on": ModelParameter(string_value=execute_on)})


def execute_on(value: str) -> str:
    return FLOATS + f'parameters {{ key: "execute_on" value {{ string_value: "{value}" }} }}'


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_model_has_a_thread_whether_it_asks_for_it_or_not(framework: str) -> None:
    traits = BackendTraits(name="b", framework=framework)

    assert worker_for(ModelConfig(name="m"), traits, [ThreadKind()]) is ThreadWorker
    assert worker_for(asking_for("thread"), traits, [ThreadKind()]) is ThreadWorker


def test_a_choice_that_no_kind_offers_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidArgumentError, match="is 'moon'; it can be thread"):
        worker_for(asking_for("moon"), BackendTraits(name="b"), [ThreadKind()])


async def test_a_plugin_s_kind_runs_the_models_that_ask_for_it(tmp_path: Path) -> None:
    write_model(tmp_path, "m", execute_on("counted"))
    write_model(tmp_path, "other")
    before = Counted.executed

    async with running(tmp_path, Steered(), Counting()) as server:
        for model in ("m", "m", "other"):
            response = await server.infer(request(model, 1.0))
            assert response.outputs["OUTPUT"].array.tolist() == [1.0]

    assert Counted.executed == before + 2


async def test_a_model_that_asks_for_a_kind_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, "m", execute_on("counted"))

    async with running(tmp_path, Steered()) as server:
        (entry,) = server.index()
        assert "parameter 'execute_on' of model 'm' is 'counted'; it can be thread" in entry.reason


@pytest.mark.parametrize(("isolation", "loads"), [("process", False), ("model", False), ("thread", True), ("", True)])
async def test_isolation_without_its_plugin_is_refused_with_what_to_install(
    tmp_path: Path, isolation: str, loads: bool
) -> None:
    write_model(tmp_path, "m", FLOATS + f'parameters {{ key: "isolation" value {{ string_value: "{isolation}" }} }}')

    async with running(tmp_path, Steered()) as server:
        (entry,) = server.index()
        assert (entry.state == "READY") is loads
        if not loads:
            assert "the worker 'process'; installed workers: thread." in entry.reason
            assert "It comes with naiad-process-workers: pip install" in entry.reason


async def test_an_instance_that_ends_while_others_are_made_fails_the_load(tmp_path: Path) -> None:
    workers: dict[str, ThreadWorker[Any]] = {}

    class Noted(ThreadWorker[Any]):
        def begin(self) -> None:
            workers[self.name] = self
            super().begin()

    class Noting(Counting):
        def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> Any:
            return Noted if execute_on == self.choice else None

    def instantiate(placement: Placement) -> SteeredInstance:
        if placement.name == "m_0_1":
            first, died = workers["m_0_0"], threading.Event()
            first.started.result(20)
            first.loop.call_soon_threadsafe(lambda: (first.host.died("killed by signal 9", ()), died.set()))
            assert died.wait(20)
        return SteeredInstance(backend)

    backend = Steered(instantiate=instantiate)
    write_model(tmp_path, "m", execute_on("counted") + "instance_group { count: 2 }")

    async with running(tmp_path, backend, Noting()) as server:
        (entry,) = server.index()

    assert entry.state == "UNAVAILABLE"
    assert "instance 'm_0_0' ended during the load: its worker died (killed by signal 9)" in entry.reason
    assert sorted(each.name for each in backend.placements) == ["m_0_0", "m_0_1"]


async def test_the_event_loop_without_its_plugin_is_refused_with_what_to_install(tmp_path: Path) -> None:
    write_model(tmp_path, "m", execute_on("event_loop"))

    async with running(tmp_path, Steered()) as server:
        (entry,) = server.index()

    assert "is 'event_loop'; it can be thread. It comes with naiad-loop-handoff: pip install" in entry.reason


async def test_two_plugins_with_a_kind_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="both offer the kind of worker 'counted'"):
        async with running(tmp_path, Steered(), Counting(), Counting()):
            pass


async def test_the_kernel_s_kind_keeps_the_contract() -> None:
    await check_workers(ThreadKind(), "thread")


class _Hosting:
    """A kind that loads the models named `far` elsewhere."""

    name, choice = "hosting", ""

    def __init__(self) -> None:
        self.elsewhere = FakeBackend("elsewhere")

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> MakeWorker | None:
        return Counted if config.name == "far" else None

    def backend_for(self, context: ModelContext, backend: Backend) -> Backend | None:
        return self.elsewhere if context.config.name == "far" else None


def test_a_kind_that_loads_models_elsewhere_comes_before_others() -> None:
    kind, here = _Hosting(), FakeBackend()
    kinds = (ThreadKind(), kind)
    near, far = ModelConfig(name="near"), ModelConfig(name="far")

    assert hosted(ModelContext(far, 1, Path(), Path()), here, kinds) is kind.elsewhere
    assert worker_for(far, here.traits, kinds) is Counted
    assert hosted(ModelContext(near, 1, Path(), Path()), here, kinds) is here
    assert worker_for(near, here.traits, kinds) is ThreadWorker

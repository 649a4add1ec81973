"""Repository agents: a model that names one is loaded behind it, or not at all."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from naiad import ModelInspector, PluginRegistry, default_scheduler
from naiad.errors import InvalidArgumentError, NaiadError, NotFoundError
from naiad.hookspecs import hookimpl
from naiad.options import Settings
from naiad.repositories import GuardedModel, RepositoryAgent
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running

from .control import explicit, value


class Agent:
    """Writes into `events` when it begins and ends; loads from `instead` where that is set, refuses with `refusal`."""

    def __init__(self, name: str, events: list[str], instead: Path | None = None, every: bool = False) -> None:
        self.name = name
        self.events = events
        self.models: list[GuardedModel] = []
        self.refusal = ""
        self._instead = instead
        self._every = every

    def required(self, settings: Settings) -> bool:
        return self._every

    @contextmanager
    def guard(self, model: GuardedModel) -> Iterator[Path]:
        self.models.append(model)
        self.events.append(f"{self.name} begins")
        if self.refusal:
            raise InvalidArgumentError(self.refusal)
        try:
            yield self._instead or model.directory
        except NaiadError:
            self.events.append(f"{self.name} ends with a failed load")
            raise
        self.events.append(f"{self.name} ends")


class Agents:
    """A plugin with these agents."""

    def __init__(self, *agents: Agent) -> None:
        self._agents = agents

    @hookimpl
    def naiad_repository_agents(self) -> Sequence[RepositoryAgent]:
        return self._agents


def section(*names: str) -> str:
    agents = ", ".join(f'{{ name: "{name}" parameters {{ key: "k" value: "of {name}" }} }}' for name in names)
    return f"model_repository_agents {{ agents [ {agents} ] }}"


async def test_a_model_whose_agent_is_not_installed_is_not_loaded(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "guarded", section("janitor"))

    async with running(tmp_path, backend) as server:
        with pytest.raises(NaiadError, match="'janitor'"):
            await server.infer(request("guarded", 1))
        (entry,) = [entry for entry in server.index() if entry.name == "guarded"]

    assert "the repository agent 'janitor'; installed repository agents: none." in entry.reason
    assert not any("guarded" in event for event in backend.events)


async def test_agents_begin_in_their_order_and_end_in_the_reverse_when_the_model_is_closed(
    tmp_path: Path, backend: FakeBackend
) -> None:
    events: list[str] = []
    first, second = Agent("first", events), Agent("second", events)
    folder = backend.write(tmp_path, "m", section("second", "first"))

    async with explicit(tmp_path, backend, Agents(first, second)) as server:
        await server.load("m")
        assert events == ["second begins", "first begins"]
        await value(server)

    assert events == ["second begins", "first begins", "first ends", "second ends"]
    (model,) = second.models
    assert (model.name, model.directory, model.parameters) == ("m", folder, {"k": "of second"})
    assert model.settings["model-control-mode"] == "explicit"


async def test_the_agents_of_a_replaced_generation_end_when_it_is_closed(tmp_path: Path, backend: FakeBackend) -> None:
    events: list[str] = []
    folder = backend.write(tmp_path, "m", section("guard"))

    async with explicit(tmp_path, backend, Agents(Agent("guard", events))) as server:
        await server.load("m")
        (folder / "1" / "weights").write_bytes(b"new")
        await server.load("m")
        while len(events) < 3:
            await server.fresh_index()

        assert events == ["guard begins", "guard begins", "guard ends"]


async def test_an_agent_is_left_with_the_error_of_a_load_that_failed(tmp_path: Path, backend: FakeBackend) -> None:
    events: list[str] = []
    backend.write(tmp_path, "m", section("first", "second"))
    backend.load_error = InvalidArgumentError("torn weights")

    async with explicit(tmp_path, backend, Agents(Agent("first", events), Agent("second", events))) as server:
        with pytest.raises(InvalidArgumentError, match="torn weights"):
            await server.load("m")

    begun = ["first begins", "second begins"]
    assert events == [*begun, "second ends with a failed load", "first ends with a failed load"]


async def test_an_agent_that_refuses_ends_those_before_it_and_the_earlier_generation_serves_on(
    tmp_path: Path, backend: FakeBackend
) -> None:
    events: list[str] = []
    first, second = Agent("first", events), Agent("second", events)
    folder = backend.write(tmp_path, "m", section("first", "second"))

    async with explicit(tmp_path, backend, Agents(first, second)) as server:
        await server.load("m")
        second.refusal = "1/weights is not what it was"
        events.clear()
        (folder / "1" / "weights").write_bytes(b"forged")
        with pytest.raises(InvalidArgumentError, match="1/weights is not what it was"):
            await server.load("m")

        assert events == ["first begins", "second begins", "first ends with a failed load"]
        assert await value(server) == 1
        (entry,) = server.index()
        assert "1/weights is not what it was" in entry.reason


async def test_an_agent_may_have_the_model_loaded_from_another_folder(tmp_path: Path, backend: FakeBackend) -> None:
    other = backend.write(tmp_path / "elsewhere", "other", "max_batch_size: 7")
    sealed = tmp_path / "models" / "m"
    sealed.mkdir(parents=True)
    (sealed / "config.pbtxt").write_text(section("unsealer"))  # without a version that could be loaded

    async with running(tmp_path / "models", backend, Agents(Agent("unsealer", [], other))) as server:
        assert server.model_config("m").max_batch_size == 7


async def test_a_configuration_in_a_load_request_does_not_take_the_agents_away(
    tmp_path: Path, backend: FakeBackend
) -> None:
    events: list[str] = []
    backend.write(tmp_path, "m", section("guard"))

    async with explicit(tmp_path, backend, Agents(Agent("guard", events), Agent("further", events))) as server:
        await server.load("m", '{"backend": "fake"}')
        await server.load(
            "m", json.dumps({"backend": "fake", "model_repository_agents": {"agents": [{"name": "further"}]}})
        )

    assert [event for event in events if "begins" in event] == ["guard begins", "guard begins", "further begins"]


async def test_files_of_a_load_request_are_guarded_as_those_they_replace(tmp_path: Path, backend: FakeBackend) -> None:
    agent = Agent("guard", [])
    backend.write(tmp_path, "m", section("guard"))
    config = '{"backend": "fake"}'

    async with explicit(tmp_path, backend, Agents(agent)) as server:
        await server.load("m", config, {"1/weights": b"of the request"})
        agent.refusal = "1/weights is not what it was"
        with pytest.raises(InvalidArgumentError, match="1/weights is not what it was"):
            await server.load("m", config, {"1/weights": b"forged"})

    assert agent.models[0].directory != tmp_path / "m"
    assert agent.models[0].parameters == {"k": "of guard"}


async def test_the_agents_of_the_plain_configuration_guard_its_variants_too(
    tmp_path: Path, backend: FakeBackend
) -> None:
    folder = backend.write(tmp_path, "m", section("guard"))
    (folder / "configs").mkdir()
    (folder / "configs" / "fast.pbtxt").write_text('backend: "fake"')
    agent = Agent("guard", [])

    async with running(tmp_path, backend, Agents(agent), model_config_name="fast"):
        assert len(agent.models) == 1


async def test_a_required_agent_guards_models_that_do_not_name_it_and_comes_first(
    tmp_path: Path, backend: FakeBackend
) -> None:
    events: list[str] = []
    backend.write(tmp_path, "m", section("named"))

    async with running(tmp_path, backend, Agents(Agent("named", events), Agent("always", events, every=True))):
        assert events == ["always begins", "named begins"]


async def test_a_configuration_with_agents_that_cannot_be_read_is_not_replaced_by_a_request(
    tmp_path: Path, backend: FakeBackend
) -> None:
    backend.write(tmp_path, "m", "model_repository_agents { agents [ { nmae: 'guard' } ] }")

    async with explicit(tmp_path, backend) as server:
        with pytest.raises(NaiadError, match="nmae"):
            await server.load("m", '{"backend": "fake"}')


async def test_a_check_without_a_server_ends_the_agents_at_once(tmp_path: Path, backend: FakeBackend) -> None:
    events: list[str] = []
    backend.write(tmp_path, "m", section("guard"))
    inspector = ModelInspector(PluginRegistry.of([default_scheduler, backend, Agents(Agent("guard", events))]))

    problems = inspector.problems([tmp_path])

    assert problems["m"] == []
    assert events == ["guard begins", "guard ends"]


def test_a_check_reports_an_agent_that_is_missing(tmp_path: Path, backend: FakeBackend) -> None:
    backend.write(tmp_path, "m", section("janitor"))
    registry = PluginRegistry.of([backend])

    (problem,) = ModelInspector(registry).problems([tmp_path])["m"]

    assert "'janitor'" in problem
    with pytest.raises(NotFoundError, match="'janitor'"):
        registry.find("repository agent", "janitor", registry.repository_agents())


def test_an_object_without_guard_is_no_agent() -> None:
    class Half:
        name = "half"

    class Plugin:
        @hookimpl
        def naiad_repository_agents(self) -> Sequence[object]:
            return [Half()]

    (report,) = PluginRegistry.of([Plugin()]).plugins

    assert "which is no RepositoryAgent: it lacks guard, required" in report.skipped

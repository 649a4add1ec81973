"""Services: made with the server, started before models and frontends, stopped after them, and found by their kind."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from naiad import Server
from naiad.errors import InvalidArgumentError, NaiadError, PluginError, UnsupportedError
from naiad.extend import Service
from naiad.frontend import Frontend
from naiad.hookspecs import hookimpl
from naiad.options import Settings
from naiad_testing.backends import FakeBackend
from naiad_testing.loops import jump, until
from naiad_testing.services import FakeService


class OtherService(FakeService):
    name = "other"


class Listening:
    """A frontend that writes down when it begins and ends."""

    name = "listening"

    def __init__(self, events: list[str]) -> None:
        self._events = events
        self.looked_up: FakeService | None = None

    @hookimpl
    def naiad_frontends(self) -> Sequence[Frontend]:
        return [self]

    async def start(self, server: Server) -> str:
        self._events.append("start frontend")
        self.looked_up = server.service(FakeService)
        return ""

    async def stop(self, grace: float) -> None:
        self._events.append("stop frontend")


async def test_services_start_before_frontends_and_stop_after_them_the_last_first(tmp_path: Path) -> None:
    events: list[str] = []
    first, second, frontend = FakeService(events), OtherService(events), Listening(events)

    async with Server(model_repository=[tmp_path], plugins=[first, second, frontend]):
        started = list(events)

    assert started == ["start fake", "start other", "start frontend"]
    assert events[3:] == ["stop frontend", "stop other", "stop fake"]
    assert frontend.looked_up is first


async def test_a_service_starts_before_the_models_load(tmp_path: Path) -> None:
    backend, service = FakeBackend(), FakeService()
    backend.write(tmp_path, "m")
    backend.load_error = ValueError("weights are cursed")

    with pytest.raises(NaiadError, match="weights are cursed"):
        async with Server(model_repository=[tmp_path], plugins=[service, backend]):
            pass

    assert service.events == ["start fake", "stop fake"]


def test_a_service_is_made_with_the_settings_of_the_server(tmp_path: Path) -> None:
    service = FakeService()

    server = Server(model_repository=[tmp_path], plugins=[service])

    assert service.settings is server.settings
    assert server.service(FakeService) is service


def test_a_service_that_no_plugin_brings_is_unsupported(tmp_path: Path) -> None:
    server = Server(model_repository=[tmp_path], plugins=[])

    with pytest.raises(UnsupportedError, match=r"^this server has no service 'fake'\.$"):
        server.service(FakeService)


def test_a_service_of_the_same_name_and_another_kind_is_an_error_of_its_plugin(tmp_path: Path) -> None:
    class Impostor(OtherService):
        name = "fake"

    class Genuine(FakeService):
        pass

    server = Server(model_repository=[tmp_path], plugins=[Impostor()])

    with pytest.raises(PluginError, match="the service 'fake' is a Impostor, which is not a Genuine"):
        server.service(Genuine)


@pytest.mark.parametrize("failure", [OSError("no disk"), SystemExit(3)])
async def test_a_service_that_cannot_start_ends_the_start_and_all_are_stopped(
    tmp_path: Path, failure: BaseException
) -> None:
    events: list[str] = []
    first, second, third = FakeService(events), OtherService(events), Listening(events)
    second.failure = failure
    server = Server(model_repository=[tmp_path], plugins=[first, second, third])

    with pytest.raises(PluginError, match=f"the service 'other' cannot start: {type(failure).__name__}"):
        await server.start()

    assert events == ["start fake", "start other", "stop other", "stop fake"]
    assert await server.stop()


async def test_a_service_keeps_its_own_error_where_it_refuses_an_option(tmp_path: Path) -> None:
    service = FakeService()
    service.failure = InvalidArgumentError("--tea must be green")

    with pytest.raises(InvalidArgumentError, match="--tea must be green"):
        await Server(model_repository=[tmp_path], plugins=[service]).start()


async def test_a_service_that_fails_to_stop_keeps_no_other_from_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[str] = []
    first, second = FakeService(events), OtherService(events)
    server = Server(model_repository=[tmp_path], plugins=[first, second])
    await server.start()
    second.failure = SystemExit(3)

    with caplog.at_level(logging.ERROR, "naiad"):
        ended = await server.stop()

    assert ended
    assert events[-2:] == ["stop other", "stop fake"]
    assert "the service 'other' failed" in caplog.text


async def test_a_service_that_does_not_stop_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Endless(OtherService):
        async def stop(self, seconds: float) -> None:
            self.events.append(f"stop within {seconds:g}")
            await asyncio.Event().wait()

    events: list[str] = []
    options = {"exit-timeout-secs": 0.0}
    server = Server(model_repository=[tmp_path], plugins=[FakeService(events), Endless(events)], options=options)
    await server.start()

    with caplog.at_level(logging.ERROR, "naiad"):
        stopping = asyncio.ensure_future(server.stop())
        await until(lambda: events[-1] == "stop within 1")
        await jump(2.0)
        await stopping

    assert events[-2:] == ["stop within 1", "stop fake"]
    assert "the service 'other' did not end within 1.5 s" in caplog.text


def test_two_services_of_one_name_are_refused_naming_both_plugins(tmp_path: Path) -> None:
    class Another(FakeService):
        pass

    with pytest.raises(PluginError, match="plugin 'FakeService' and plugin 'Another' both offer the service 'fake'"):
        Server(model_repository=[tmp_path], plugins=[FakeService(), Another()])


def test_a_plugin_whose_services_cannot_be_made_is_named(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def naiad_services(self, settings: Settings) -> Sequence[Service]:
            raise SystemExit(settings["id"])

    with pytest.raises(PluginError, match=r"naiad_services of plugin 'Broken'.*SystemExit"):
        Server(model_repository=[tmp_path], plugins=[Broken()])


def test_a_service_without_stop_is_refused_naming_its_plugin(tmp_path: Path) -> None:
    class Half:
        @hookimpl
        def naiad_services(self, settings: Settings) -> Sequence[object]:
            return [FakeService, 7]

    with pytest.raises(PluginError, match=r"plugin 'Half': naiad_services .* is no Service: it lacks"):
        Server(model_repository=[tmp_path], plugins=[Half()])


async def test_a_service_whose_stop_is_a_plain_function_that_raises_keeps_no_other_from_stopping(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Rude(OtherService):
        def stop(self, seconds: float) -> None:  # type: ignore[override]
            raise SystemExit(3)

    events: list[str] = []
    async with Server(model_repository=[tmp_path], plugins=[FakeService(events), Rude(events)]):
        pass

    assert events == ["start fake", "start other", "stop fake"]
    assert "stopping: the service 'other' failed" in caplog.messages

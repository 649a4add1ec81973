"""The index of the repositories: read on a thread, shared by concurrent callers, without models that are gone."""

import asyncio
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from naiad._lifecycle import repository
from naiad.reports import IndexEntry
from naiad.types import Request
from naiad_testing.fake_backend import FakeBackend
from naiad_testing.in_loop import off_the_loop, request, running
from naiad_testing.loops import passing_time, turns, until

from .control import explicit


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    backend = FakeBackend()
    backend.write(tmp_path, "m")
    return backend


class SlowScan:
    """Reads the repositories when the test opens the gate, and notes the thread of each read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[threading.Thread] = []
        self.begun, self.gate = threading.Event(), threading.Event()
        self._scan = repository.scan
        monkeypatch.setattr(repository, "scan", self)

    def __call__(self, roots: Sequence[Path]) -> dict[str, list[Path]]:
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.gate.wait(10)
        return self._scan(roots)


async def test_many_callers_of_the_index_share_a_read_that_leaves_the_event_loop_free(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with explicit(tmp_path, backend) as server:
        scan = SlowScan(monkeypatch)
        indexes = [asyncio.ensure_future(server.fresh_index()) for _ in range(20)]
        await off_the_loop(lambda: scan.begun.wait(10))

        assert server.index() == [IndexEntry("m")]  # the event loop goes on
        assert not any(index.done() for index in indexes)
        scan.gate.set()
        outcomes = await asyncio.gather(*indexes)

    assert outcomes == [[IndexEntry("m")]] * 20
    assert len(scan.threads) == 2  # callers that came during the first read share the second
    assert threading.main_thread() not in scan.threads


async def test_a_folder_made_during_a_read_is_in_the_index_of_those_who_ask_then(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with explicit(tmp_path, backend) as server:
        scan = SlowScan(monkeypatch)
        first = asyncio.ensure_future(server.fresh_index())
        await off_the_loop(lambda: scan.begun.wait(10))
        backend.write(tmp_path, "new")
        second = asyncio.ensure_future(server.fresh_index())
        await turns()
        scan.gate.set()

        assert await second == [IndexEntry("m"), IndexEntry("new")]
        await first


async def test_the_index_without_a_read_touches_no_disk(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with explicit(tmp_path, backend) as server:
        scan = SlowScan(monkeypatch)

        assert server.index() == [IndexEntry("m")]
        assert await server.fresh_index(ready=True) == []

    assert scan.threads == []


async def test_models_that_came_with_their_files_are_forgotten_when_they_are_unloaded(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with explicit(tmp_path, backend) as server:
        for number in range(3):
            await server.load(f"once-{number}", '{"backend": "fake"}', {"1/weights": b""})
            await server.unload(f"once-{number}")
        await until(lambda: not server._models.records)

        assert await server.fresh_index() == [IndexEntry("m")]


async def test_a_model_that_was_unloaded_and_has_its_folder_says_so(tmp_path: Path, backend: FakeBackend) -> None:
    async with explicit(tmp_path, backend) as server:
        await server.load("m")
        await server.unload("m")
        await until(lambda: server.index() == [IndexEntry("m", 1, "UNAVAILABLE", "unloaded")])
        await turns(100)

        assert await server.fresh_index() == [IndexEntry("m", 1, "UNAVAILABLE", "unloaded")]


async def test_models_whose_folders_are_gone_are_forgotten_while_the_server_polls(
    tmp_path: Path, backend: FakeBackend
) -> None:
    async with running(tmp_path, backend, model_control_mode="poll", repository_poll_secs=1.0) as server:
        for number in range(3):
            name = f"dated-{number}"
            backend.write(tmp_path, name)
            with passing_time():  # a poll that is under way has begun too early: one after it finds the model
                await until(lambda name=name: name in server._models.serving_versions)
            await server.infer(_sequence(name))
            shutil.rmtree(tmp_path / name)
            with passing_time():
                await until(lambda name=name: name not in server._models.records)

        assert list(server._models.records) == ["m"]
        assert set(server._models.repositories.fingerprints.folders) == {tmp_path / "m"}
        assert server._models.sticky_routing._draining == {}


def _sequence(name: str) -> Request:
    return request(name, 1, correlation_id=7)


async def test_a_repository_that_is_named_twice_is_one_repository(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path / "models", "m")
    (tmp_path / "link").symlink_to("models")

    async with running([tmp_path / "models", tmp_path / "models", tmp_path / "link"], backend) as server:
        assert server.index() == [IndexEntry("m", 1, "READY")]

"""The index of the repositories: read on a thread, shared by concurrent callers, without models that are gone."""

import asyncio
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

import pytest

from naiad import Server
from naiad._lifecycle import repository
from naiad.errors import NaiadError, NotFoundError
from naiad.reports import IndexEntry
from naiad.types import Request
from naiad_config.stores import Location
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


class ScansInTurn:
    """Reads the repositories, each time when the test permits it; raises what it is permitted with instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self._permits = SimpleQueue[int](), SimpleQueue[NaiadError | None]()
        self._scan, self._count = repository.scan, 0
        monkeypatch.setattr(repository, "scan", self)

    def __call__(self, roots: Sequence[Path]) -> dict[str, list[Path]]:
        self._count += 1
        self.begun.put(self._count)
        error = self._permits.get(timeout=10)
        if error is not None:
            raise error
        return self._scan(roots)

    async def wait_for(self, number: int) -> None:
        """Return when that read has begun."""
        assert await asyncio.to_thread(self.begun.get, timeout=10) == number

    def permit(self, error: NaiadError | None = None) -> None:
        self._permits.put(error)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_read_that_fails_or_is_cancelled_is_not_shared(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    async with explicit(tmp_path, backend) as server:
        scans, read = ScansInTurn(monkeypatch), server._models.repositories.read
        under_way = asyncio.ensure_future(read())
        await scans.wait_for(1)
        failing, sharing = asyncio.ensure_future(read()), asyncio.ensure_future(read())
        await turns()
        scans.permit()
        await under_way
        await scans.wait_for(2)
        backend.write(tmp_path, "new")
        if is_cancelled:
            failing.cancel()
        scans.permit(None if is_cancelled else NotFoundError("the disk is away"))
        scans.permit()

        assert sorted(await sharing) == ["m", "new"]
        with pytest.raises(asyncio.CancelledError if is_cancelled else NotFoundError):
            await failing


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


class HeldSearches:
    """Searches for the folders of models: `held` are those that found none, once the test lets them end.

    Those after `is_over` are as usual.
    """

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[asyncio.Future[None]] = []
        self.is_over = False
        self._find = server._models.repositories.find
        monkeypatch.setattr(server._models.repositories, "find", self.find)

    async def find(self, name: str) -> list[Location]:
        if self.is_over:
            return await self._find(name)
        self.held.append(asyncio.get_running_loop().create_future())
        await self.held[-1]
        return []


async def load(server: Server) -> None:
    await server.load("once", '{"backend": "fake"}', {"1/weights": b""})


async def about_to_forget(server: Server, monkeypatch: pytest.MonkeyPatch) -> HeldSearches:
    """The searches of a server that has unloaded the model and looks whether its folder is there."""
    await load(server)
    searches = HeldSearches(server, monkeypatch)
    await server.unload("once")
    await until(lambda: len(searches.held) == 1)
    return searches


@pytest.mark.parametrize("is_loaded", [False, True])
async def test_a_model_that_is_loaded_again_while_it_is_about_to_be_forgotten_is_not_forgotten(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, is_loaded: bool
) -> None:
    async with explicit(tmp_path, backend) as server:
        searches = await about_to_forget(server, monkeypatch)
        searches.is_over = True
        record, fingerprinting = server._models.records["once"], asyncio.Event()
        reading = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(server._models.repositories, "fingerprint", lambda folders: fingerprinting.set() or reading)
        loading = asyncio.ensure_future(load(server))
        await fingerprinting.wait()
        if is_loaded:
            reading.set_result(None)
            await loading
        searches.held[0].set_result(None)
        await turns(100)
        if not is_loaded:
            reading.set_result(None)
            await loading

        assert server._models.records["once"] is record
        assert IndexEntry("once", 1, "READY") in server.index()


async def test_a_model_that_came_back_is_not_forgotten_for_its_earlier_versions(
    tmp_path: Path, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with explicit(tmp_path, backend) as server:
        searches = await about_to_forget(server, monkeypatch)
        earlier = asyncio.ensure_future(server._models._forget(server._models.records["once"]))
        await until(lambda: len(searches.held) == 2)
        searches.is_over = True
        searches.held[0].set_result(None)
        await until(lambda: "once" not in server._models.records)
        await load(server)
        searches.held[1].set_result(None)
        await earlier

        assert IndexEntry("once", 1, "READY") in server.index()


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


async def test_a_model_that_two_repositories_have_is_unavailable_before_it_is_loaded(
    tmp_path: Path, backend: FakeBackend
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "m", other / "m")

    async with explicit([tmp_path, other], backend) as server:
        entry = next(entry for entry in await server.fresh_index() if entry.name == "m")

    assert (entry.version, entry.state) == (0, "UNAVAILABLE")
    assert entry.reason.endswith(f": {tmp_path}, {other}")

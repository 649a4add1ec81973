"""Stores that go away, in the middle of a download too, and come back."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import naiad_store
from naiad import Server
from naiad.errors import NaiadError, NotFoundError, UnavailableError
from naiad_config.stores import find
from naiad_store import repository
from naiad_store.cache import ModelCache
from naiad_store.repository import StoreRepository
from naiad_store.sources import StoredObject
from naiad_store.urls import StoreUrl
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running

from .conftest import Bucket, start_store


async def served(server: Server, name: str = "m") -> bool:
    return (await server.infer(request(name, 1))).outputs["OUTPUT"].array.tolist() == [1]


def start_again(bucket: Bucket) -> None:
    """The store again at its address, with what it had."""
    _, port = bucket.server.get_host_and_port()
    bucket.server = start_store(port)


async def until(server: Server, condition: Callable[[list[Any]], bool]) -> None:
    """Ask for the index until it is so."""
    while not condition(list(await server.fresh_index())):
        pass


async def test_a_server_that_polls_serves_on_while_the_store_is_away_and_follows_it_when_it_is_back(
    bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "naiad")
    bucket.put_model("m")
    options = {"model_control_mode": "poll", "repository_poll_secs": 0.05}

    async with running([bucket.url], FakeBackend(), naiad_store, **options) as server:  # type: ignore[list-item]
        bucket.server.stop()
        await until(server, lambda index: "cannot be reached" in index[0].reason)
        assert [(entry.name, entry.state) for entry in await server.fresh_index()] == [("m", "READY")]
        assert await served(server)

        start_again(bucket)
        bucket.put_model("late")
        await until(
            server, lambda index: [(e.name, e.reason) for e in index if e.state == "READY"] == [("late", ""), ("m", "")]
        )

        assert await served(server, "late")
    assert caplog.text.count("serves on") == 1
    assert f"the model store '{bucket.url}' can be reached again" in caplog.text


async def test_a_server_that_polls_loads_what_changed_and_unloads_what_is_gone(bucket: Bucket) -> None:
    bucket.put_model("changes")
    bucket.put_model("goes")
    backend = FakeBackend()
    options = {"model_control_mode": "poll", "repository_poll_secs": 0.05}

    async with running([bucket.url], backend, naiad_store, **options) as server:  # type: ignore[list-item]
        loads = backend.events.count("load changes 1")
        bucket.put("changes/1/weights", b"other weights")
        bucket.store.delete(["models/goes/config.pbtxt", "models/goes/1/weights"])
        await until(server, lambda index: backend.events.count("load changes 1") == loads + 1)
        await until(server, lambda index: [e.name for e in index if e.state == "READY"] == ["changes"])

        assert await served(server, "changes")
        assert backend.events.count("load goes 1") == 1


async def test_a_download_that_the_store_breaks_off_fails_the_load_and_the_next_one_goes_on_where_it_was(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "_PART", 2**16)
    weights = bytes(range(256)) * 1024
    bucket.put_model("m", weights)
    fetched: list[int] = []
    broken: list[int] = []
    original = repository.StoreRepository._part

    def part(self: repository.StoreRepository, start: int, stored: Any) -> Any:
        if stored.path.endswith("weights"):
            if start == 2 * 2**16 and not broken:
                broken.append(start)
                bucket.server.stop()
            fetched.append(start)
        return original(self, start, stored)

    monkeypatch.setattr(repository.StoreRepository, "_part", part)
    options = {"model_control_mode": "explicit"}

    async with running([bucket.url], FakeBackend(), naiad_store, **options) as server:  # type: ignore[list-item]
        with pytest.raises(NaiadError, match="cannot be reached"):
            await server.load("m")
        start_again(bucket)
        fetched.clear()
        await server.load("m")

        assert await served(server)
    assert fetched == [2 * 2**16, 3 * 2**16]


async def test_a_bucket_that_is_not_there_is_an_error_that_says_so(bucket: Bucket) -> None:
    with pytest.raises(NotFoundError, match="cannot be read: there is no such bucket"):
        async with running([bucket.url.replace("/bucket/", "/pail/")], naiad_store, exit_on_error=True):  # type: ignore[list-item]
            pass


async def test_credentials_that_are_taken_away_later_leave_the_models_in_service_and_the_index_says_so(
    bucket: Bucket,
) -> None:
    bucket.put_model("m")
    options = {"model_control_mode": "explicit", "repository_poll_secs": 0.0}

    async with running([bucket.url], FakeBackend(), naiad_store, **options) as server:  # type: ignore[list-item]
        await server.load("m")
        bucket.check_credentials(True)
        try:
            (entry,) = await server.fresh_index()
            with pytest.raises(UnavailableError, match="refuses the credentials"):
                await server.load("new")
        finally:
            bucket.check_credentials(False)

        assert (entry.state, "refuses the credentials" in entry.reason) == ("READY", True)
        assert await served(server)


class HangingObjects:
    """A source of one model that answers after `opened` alone; `listings` has the prefixes of its listings."""

    def __init__(self) -> None:
        self.opened = Event()
        self.opened.set()
        self.listings: list[str] = []

    def objects(self, prefix: str) -> list[StoredObject]:
        self.listings.append(prefix)
        assert self.opened.wait(60)
        return [StoredObject("s", f"models/m/{path}", 1, "etag") for path in ("config.pbtxt", "1/weights")]

    def read(self, stored: StoredObject, start: int, end: int) -> bytes:
        return bytes(end - start)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingObjects]:
    monkeypatch.setattr(repository, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(repository, "LONGEST_SECONDS", 0.2)
    objects = HangingObjects()
    yield objects
    objects.opened.set()


def opened(objects: HangingObjects, folder: Path) -> StoreRepository:
    return StoreRepository(StoreUrl.parse("s3://bucket/models"), objects, ModelCache(folder, 0), 0.0)


def test_a_store_that_does_not_answer_is_asked_once_and_holds_up_no_caller(
    hanging: HangingObjects, tmp_path: Path
) -> None:
    store = opened(hanging, tmp_path)
    store.models()
    hanging.opened.clear()

    names = [sorted(models) for models in (store.models(), store.models("m"), store.models())]
    with pytest.raises(UnavailableError, match="has not answered for"):
        store.models("new")

    assert names == [["m"]] * 3
    assert "has not answered for" in store.problem
    assert len(hanging.listings) == 2


def test_a_store_that_does_not_answer_keeps_no_model_of_another_repository_from_a_load(
    hanging: HangingObjects, tmp_path: Path
) -> None:
    hanging.opened.clear()
    (tmp_path / "models" / "local").mkdir(parents=True)

    locations = find([tmp_path / "models", opened(hanging, tmp_path)], "local")

    assert locations == [tmp_path / "models" / "local"]


def test_a_model_that_may_be_in_the_store_alone_is_waited_for_longer(
    hanging: HangingObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "LONGEST_SECONDS", 60.0)
    hanging.opened.clear()
    store = opened(hanging, tmp_path)

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(store.models, "m")
        with pytest.raises(UnavailableError, match="has not answered for"):
            store.models("m", is_elsewhere=True)
        hanging.opened.set()

    assert sorted(waiting.result()) == ["m"]


def test_the_late_answer_of_a_store_counts_for_the_next_caller(hanging: HangingObjects, tmp_path: Path) -> None:
    store = opened(hanging, tmp_path)
    store.models()
    hanging.opened.clear()
    store.models()
    hanging.opened.set()

    while store.problem:
        store.models("m")

    assert sorted(store.models()) == ["m"]

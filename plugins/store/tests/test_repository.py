"""Servers on a repository in a store, over the real protocol of S3."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import naiad_store
from naiad import Server
from naiad.errors import NaiadError, NotFoundError, UnavailableError
from naiad_store.buckets import BucketObjects
from naiad_store.repository import StoreRepository
from naiad_store.urls import StoreUrl
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running

from .conftest import Bucket


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The parts that are downloaded: the path of the object and the offset."""
    fetched: list[tuple[str, int]] = []
    original = StoreRepository._part

    def part(self: StoreRepository, start: int, stored: Any) -> Any:
        fetched.append((stored.path.removeprefix("models/"), start))
        return original(self, start, stored)

    monkeypatch.setattr(StoreRepository, "_part", part)
    return fetched


def serving(bucket: Bucket, **options: Any) -> AbstractAsyncContextManager[Server]:
    return running([bucket.url], FakeBackend(), naiad_store, **options)  # type: ignore[list-item]


def cached(tmp_path: Path) -> set[bytes]:
    """The weights of all model folders in the cache."""
    return {path.read_bytes() for path in (tmp_path / "cache" / "naiad" / "store" / "models").glob("*/1/weights")}


async def served(server: Server, name: str = "m") -> bool:
    return (await server.infer(request(name, 1))).outputs["OUTPUT"].array.tolist() == [1]


async def test_a_model_is_downloaded_and_served(bucket: Bucket, parts: list[tuple[str, int]]) -> None:
    bucket.put_model("m")

    async with serving(bucket) as server:
        assert await served(server)

    assert sorted(parts) == [("m/1/weights", 0), ("m/config.pbtxt", 0)]


async def test_a_restart_downloads_nothing(bucket: Bucket, parts: list[tuple[str, int]]) -> None:
    bucket.put_model("m")
    async with serving(bucket):
        parts.clear()

    async with serving(bucket) as server:
        assert await served(server)

    assert parts == []


async def test_in_explicit_mode_all_models_are_listed_and_only_the_loaded_one_is_downloaded(
    bucket: Bucket, parts: list[tuple[str, int]]
) -> None:
    bucket.put_model("m")
    bucket.put_model("other")

    async with serving(bucket, model_control_mode="explicit") as server:
        await server.load("m")
        index = await server.fresh_index()

    assert [entry.name for entry in index] == ["m", "other"]
    assert {path.partition("/")[0] for path, _ in parts} == {"m"}


async def test_a_changed_object_is_downloaded_alone_and_the_model_loaded_anew(
    bucket: Bucket, parts: list[tuple[str, int]], tmp_path: Path
) -> None:
    bucket.put_model("m")

    async with serving(bucket, model_control_mode="explicit") as server:
        await server.load("m")
        bucket.put("m/1/weights", b"other weights")
        parts.clear()
        await server.load("m")

    assert parts == [("m/1/weights", 0)]
    assert cached(tmp_path) == {b"weights", b"other weights"}  # the earlier generation may still read its files


async def test_poll_mode_follows_the_store(bucket: Bucket) -> None:
    bucket.put_model("m")

    async with serving(bucket, model_control_mode="poll", repository_poll_secs=0.05) as server:
        bucket.put_model("late")
        while not [entry for entry in server.index(ready=True) if entry.name == "late"]:
            await server.fresh_index()

        assert await served(server, "late")


async def test_a_store_that_is_away_leaves_its_models_in_service_and_the_index_says_so(
    bucket: Bucket, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put_model("m")

    async with serving(bucket, model_control_mode="explicit", repository_poll_secs=0.0) as server:
        await server.load("m")
        bucket.server.stop()
        index = await server.fresh_index()

        assert await served(server)
        assert [(entry.name, entry.state) for entry in index] == [("m", "READY")]
        assert f"the model store '{bucket.url}' cannot be reached" in index[0].reason
        assert "what is loaded serves on" in caplog.text
        assert server.ready().ready


async def test_a_store_that_is_away_at_the_start_is_an_error(bucket: Bucket) -> None:
    bucket.server.stop()

    with pytest.raises(NaiadError, match="cannot be reached"):
        async with serving(bucket, exit_on_error=True):
            pass


async def test_a_prefix_without_objects_is_an_error_at_once(bucket: Bucket) -> None:
    with pytest.raises(NotFoundError, match=f"'{bucket.url}' cannot be read: there is nothing below that prefix"):
        async with serving(bucket, exit_on_error=True):
            pass


async def test_wrong_credentials_are_reported_as_such(bucket: Bucket) -> None:
    bucket.put_model("m")
    bucket.check_credentials(True)
    try:
        known = r"refuses the credentials of this server \(access key 'key', region us-east-1\)"
        with pytest.raises(UnavailableError, match=known):
            async with serving(bucket, exit_on_error=True):
                pass
    finally:
        bucket.check_credentials(False)


KILLED = """
import os, signal, sys
from naiad import PluginRegistry
from naiad.options import Settings
from naiad_store import repository

original = repository.StoreRepository._part

def part(self, start, stored):
    if start >= 3 * repository._PART:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, start, stored)

repository.StoreRepository._part = part
repository._PART = 2**16
registry = PluginRegistry.discover()
registry.repository_scheme("s3").open(sys.argv[1], Settings(registry.options(), {})).models("m")["m"].fetch()
"""


async def test_a_download_whose_process_was_killed_goes_on_where_it_was(
    bucket: Bucket, parts: list[tuple[str, int]], tmp_path: Path
) -> None:
    weights = os.urandom(5 * 2**16 + 7)
    bucket.put_model("m", weights)
    ended = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, bucket.url)
    assert await asyncio.wait_for(ended.wait(), 60) == -9

    async with serving(bucket) as server:
        assert await served(server)
    assert cached(tmp_path) == {weights}

    (offset,) = [offset for path, offset in parts if path == "m/1/weights"]
    assert offset >= 2**16


MEASURED = """
import pathlib, re, sys
from naiad import PluginRegistry
from naiad.options import Settings
from naiad_store import repository
import obstore.store, concurrent.futures

repository._PART = 2**21
registry = PluginRegistry.discover()
model = registry.repository_scheme("s3").open(sys.argv[1], Settings(registry.options(), {})).models("m")["m"]
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: it may be that of the parent
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
before = peak()
model.fetch()
print(peak() - before)
"""


def test_a_large_object_takes_the_memory_of_a_few_parts(bucket: Bucket) -> None:
    bucket.put_model("m", bytes(24 * 2**20))

    result = subprocess.run(
        [sys.executable, "-c", MEASURED, bucket.url], timeout=120, check=True, capture_output=True, text=True
    )

    assert int(result.stdout) < 14 * 1024  # KiB


async def test_an_object_that_changes_during_the_load_is_refused(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put_model("m")
    original: Callable[..., Any] = StoreRepository._part

    def part(self: StoreRepository, start: int, stored: Any) -> Any:
        bucket.put(stored.path.removeprefix("models/"), os.urandom(7))
        return original(self, start, stored)

    monkeypatch.setattr(StoreRepository, "_part", part)

    with pytest.raises(NaiadError, match="changed during its download; load it again"):
        async with serving(bucket, exit_on_error=True):
            pass


async def test_an_empty_version_folder_and_markers_of_folders_are_taken(bucket: Bucket) -> None:
    bucket.put("m/config.pbtxt", b'backend: "fake"')
    bucket.put("m/1", b"")
    bucket.put("m/extra", b"")
    bucket.put("m/extra/file", b"x")
    bucket.put("m/1/tokens", b"")
    bucket.put("m/1/tokens/first/words.json", b"{}")

    async with serving(bucket) as server:
        assert await served(server)


async def test_one_model_is_served_under_its_name_and_loaded_alone(bucket: Bucket) -> None:
    bucket.put("m/config.pbtxt", b'backend: "fake"')
    bucket.put("m/1/weights", b"weights")

    async with running([f"{bucket.url}/m#other"], FakeBackend(), naiad_store, model_control_mode="explicit") as server:  # type: ignore[list-item]
        await server.load("other")

        assert await served(server, "other")
        assert [entry.name for entry in await server.fresh_index()] == ["other"]


async def test_a_model_that_was_loaded_since_the_listing_can_be_loaded_again_while_the_store_is_away(
    bucket: Bucket,
) -> None:
    bucket.put_model("m")

    async with serving(bucket, model_control_mode="explicit") as server:
        await server.fresh_index()
        bucket.put_model("late")
        await server.load("late")
        bucket.server.stop()
        await server.load("late")

        assert await served(server, "late")


def test_a_server_without_the_plugin_says_what_to_install(bucket: Bucket) -> None:
    with pytest.raises(NotFoundError, match=r"the repository scheme 's3'.* pip install 'naiad-store'"):
        Server(model_repository=[bucket.url], plugins=[FakeBackend()])


CHANGED = datetime(2026, 1, 1, 12, 0, 5, 700_000, UTC)


@pytest.mark.parametrize(
    ("listed", "condition"),
    [
        ('"abc"', {"if_match": '"abc"'}),
        (None, {"if_unmodified_since": CHANGED + timedelta(seconds=1)}),
        ('""', {"if_unmodified_since": CHANGED + timedelta(seconds=1)}),
    ],
)
def test_a_part_is_asked_for_under_the_etag_that_was_listed_or_the_time_of_the_last_change(
    listed: str | None, condition: dict[str, object]
) -> None:
    conditions = []

    class FakeStore:
        def list(self, prefix: str | None) -> list[list[dict[str, object]]]:
            return [[{"path": "m/1/weights", "size": 4, "e_tag": listed, "last_modified": CHANGED}]]

        def get(self, path: str, options: dict[str, object]) -> "FakeStore":
            conditions.append({name: value for name, value in options.items() if name != "range"})
            return self

        def bytes(self) -> bytes:
            return b"abcd"

    bucket = BucketObjects(StoreUrl.parse("s3://bucket"), FakeStore(), "")  # type: ignore[arg-type]

    (stored,) = bucket.objects("")
    bucket.read(stored, 0, 4)

    assert conditions == [condition]
    assert stored.etag.strip('"')

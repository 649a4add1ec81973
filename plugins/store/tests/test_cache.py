"""The size of the cache: what is removed from it, and what stays."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import monotonic
from typing import BinaryIO

import pytest

from naiad.errors import UnavailableError
from naiad_store.cache import ModelCache
from naiad_store.sources import StoredObject


def download(stored: StoredObject, file: BinaryIO) -> None:
    file.write(bytes(stored.size))


def fetch(cache: ModelCache, model: str, generation: str) -> Path:
    """The folder of a generation of a model, with one object of 100 bytes."""
    return cache.folder(
        model, f"{model}-{generation}", {"weights": StoredObject("s3", model, 100, generation)}, download
    )


def test_the_generation_that_was_used_longest_ago_is_removed_when_the_cache_is_full(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path, 250)

    folders = [fetch(cache, "m", str(generation)) for generation in range(3)]

    assert [folder.exists() for folder in folders] == [False, True, True]
    assert sum(path.stat().st_size for path in (tmp_path / "objects").iterdir()) == 200


def test_a_generation_that_is_fetched_again_and_again_leaves_the_one_before_it(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path, 1)

    serving, *_, again = [fetch(cache, "m", generation) for generation in ("1", "2", "2", "2")]

    assert (serving.exists(), again.exists()) == (True, True)


def test_what_another_server_has_loaded_stays_whatever_the_limit_says(tmp_path: Path) -> None:
    first, other = ModelCache(tmp_path, 0), ModelCache(tmp_path, 1)
    kept = fetch(first, "m", "1")

    fetch(other, "n", "1")
    stayed = kept.exists()
    del first
    fetch(other, "n", "2")

    assert (stayed, kept.exists()) == (True, False)


def test_without_a_limit_nothing_is_removed(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path, 0)

    assert all(folder.exists() for folder in [fetch(cache, "m", str(generation)) for generation in range(5)])


def test_what_another_server_has_downloaded_for_an_unfinished_folder_stays(tmp_path: Path) -> None:
    other = ModelCache(tmp_path, 1)
    objects = {f"1/{part}": StoredObject("s3", part, 100, "etag") for part in ("weights", "more")}

    def download_and_evict(stored: StoredObject, file: BinaryIO) -> None:
        download(stored, file)
        for generation in range(3):  # the third removes the first
            fetch(other, "n", f"{stored.path}{generation}")

    folder = ModelCache(tmp_path, 0).folder("m", "m-1", objects, download_and_evict)

    assert [(folder / path).stat().st_size for path in objects] == [100, 100]
    assert not (tmp_path / "models" / "n-weights0").exists()


def test_what_a_killed_server_had_begun_is_removed_when_the_cache_is_full(tmp_path: Path) -> None:
    unfinished = tmp_path / "models" / "m-1.123.new"
    unfinished.mkdir(parents=True)
    (tmp_path / "partial").mkdir()
    (tmp_path / "partial" / "broken-off").write_bytes(bytes(300))

    fetch(ModelCache(tmp_path, 200), "n", "1")

    assert not unfinished.exists()
    assert list((tmp_path / "partial").iterdir()) == []


def test_a_folder_whose_removal_is_broken_off_is_assembled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_one_file(folder: Path, ignore_errors: bool) -> None:
        for path in list(folder.rglob("*"))[:1]:
            path.unlink()

    objects = {part: StoredObject("s3", part, 100, "etag") for part in ("more", "weights")}
    killed = ModelCache(tmp_path, 150)
    half_removed = ModelCache(tmp_path, 0).folder("m", "m-1", objects, download)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", remove_one_file)
        fetch(killed, "n", "1")
    restored = ModelCache(tmp_path, 0).folder("m", "m-1", objects, download)

    assert restored == half_removed
    assert sorted(path.name for path in restored.iterdir()) == ["more", "weights"]


def test_a_download_that_begins_as_another_drops_its_file_takes_a_new_one(tmp_path: Path) -> None:
    stored = StoredObject("s3", "m", 100, "etag")
    waits, drops = Event(), Event()

    def come_short(stored: StoredObject, file: BinaryIO) -> None:
        waits.set()
        drops.wait(30)

    with ThreadPoolExecutor(2) as threads:
        short = threads.submit(ModelCache(tmp_path, 0).folder, "m", "short", {"weights": stored}, come_short)
        waits.wait(30)
        whole = threads.submit(ModelCache(tmp_path, 0).folder, "m", "whole", {"weights": stored}, download)
        until_blocked(tmp_path / "partial" / stored.key, openings=2)
        drops.set()

    assert isinstance(short.exception(), UnavailableError)
    assert (whole.result() / "weights").stat().st_size == 100


def test_servers_that_load_and_evict_at_once_lose_nothing_that_they_use(tmp_path: Path) -> None:
    def load(server: int) -> list[bool]:
        cache = ModelCache(tmp_path, 300)
        folders = [fetch(cache, "m", str((server + step) % 7)) for step in range(60)]
        return [(folder / "weights").stat().st_size == 100 for folder in folders[-2:]]

    with ThreadPoolExecutor(4) as threads:
        kept = [each for loaded in threads.map(load, range(4)) for each in loaded]

    assert all(kept)


def until_blocked(path: Path, openings: int) -> None:
    """Wait until so many descriptors of this process are open on that file."""
    deadline = monotonic() + 30
    while monotonic() < deadline:
        if sum(each.resolve() == path for each in Path("/proc/self/fd").iterdir()) == openings:
            return
    raise TimeoutError(f"{path} was not opened {openings} times")

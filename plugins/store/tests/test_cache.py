"""The size of the cache: what is removed from it, and what stays."""

from pathlib import Path
from typing import BinaryIO

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

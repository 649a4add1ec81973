"""A JSON array in a file."""

import json
import os
from pathlib import Path

import pytest

from naiad_tracing.array_file import ArrayFile


def test_the_array_is_valid_after_every_append(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    results = []

    file = ArrayFile(str(path))
    for elements in ((), ("1", "2"), (), ('{"a":3}',)):
        file.append(elements)
        results.append(json.loads(path.read_text()))

    assert results == [[], [1, 2], [1, 2], [1, 2, {"a": 3}]]


def test_what_the_file_held_before_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("[1, 2, 3, 4, 5, 6, 7]")

    ArrayFile(str(path))

    assert path.read_text() == "[]"


def test_a_file_that_was_moved_away_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    file = ArrayFile(str(path))
    file.append(["1"])

    path.rename(tmp_path / "yesterday.json")
    file.append(["2"])

    assert [json.loads((tmp_path / name).read_text()) for name in ("yesterday.json", "t.json")] == [[1], [2]]


def test_a_file_that_was_emptied_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    file = ArrayFile(str(path))
    file.append(["1"])

    path.write_text("")
    file.append(["2"])

    assert json.loads(path.read_text()) == [2]


def test_a_full_disk_leaves_the_array_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    file = ArrayFile(str(path))
    file.append(["1"])
    space = [3]

    def pwrite(descriptor: int, content: bytes, offset: int) -> int:
        """Takes three bytes of a long write, as a disk does that is nearly full, and none after it."""
        if len(content) > 1 and not space:
            raise OSError(28, "No space left on device")
        return really(descriptor, content[: space.pop()] if len(content) > 1 else content, offset)

    really = os.pwrite
    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OSError, match="No space left"):
        file.append(["22222"])

    assert json.loads(path.read_text()) == [1]


def test_a_file_in_a_folder_that_is_not_there_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ArrayFile(str(tmp_path / "none" / "t.json"))

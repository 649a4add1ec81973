"""Fingerprints of model folders."""

import os
from pathlib import Path

import pytest

from naiad_config.fingerprints import Fingerprints


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text("max_batch_size: 1")
    (tmp_path / "m" / "1" / "weights").write_bytes(b"one")
    return tmp_path / "m"


def test_an_unchanged_folder_has_the_same_fingerprint(model: Path) -> None:
    fingerprints = Fingerprints()

    assert fingerprints.of(model) == fingerprints.of(model) == Fingerprints().of(model)


def test_touching_a_file_changes_nothing(model: Path) -> None:
    fingerprints = Fingerprints()
    before = fingerprints.of(model)

    os.utime(model / "1" / "weights", (1, 1))

    assert fingerprints.of(model) == before


@pytest.mark.parametrize(
    "change", ["content", "same length", "new file", "gone", "renamed", "new version", "empty folder"]
)
def test_any_change_changes_the_fingerprint(model: Path, change: str) -> None:
    fingerprints = Fingerprints()
    before = fingerprints.of(model)
    weights = model / "1" / "weights"
    if change == "content":
        weights.write_bytes(b"three")
    elif change == "same length":
        weights.write_bytes(b"two")
    elif change == "new file":
        (model / "labels.txt").write_text("")
    elif change == "gone":
        weights.unlink()
    elif change == "renamed":
        weights.rename(model / "1" / "weights2")
    elif change == "new version":
        (model / "2").mkdir()
    else:
        (model / "warmup").mkdir()

    assert fingerprints.of(model) != before


def test_the_cache_of_the_interpreter_changes_nothing(model: Path) -> None:
    fingerprints = Fingerprints()
    before = fingerprints.of(model)

    (model / "1" / "__pycache__").mkdir()
    (model / "1" / "__pycache__" / "model.pyc").write_bytes(b"x")

    assert fingerprints.of(model) == before


def test_links_pipes_and_odd_names_end(model: Path) -> None:
    (model / "up").symlink_to(model)
    (model / "loop").symlink_to(model / "loop")
    (model / "dangling").symlink_to(model / "nothing")
    os.mkfifo(model / "pipe")
    (model / "zero").symlink_to("/dev/zero")
    with open(os.fsencode(model) + b"/\xff", "wb"):  # noqa: PTH123 - a Path cannot hold the name
        pass
    fingerprints = Fingerprints()

    assert fingerprints.of(model) == fingerprints.of(model)


def test_a_folder_that_is_gone_has_a_fingerprint_of_its_own(model: Path, tmp_path: Path) -> None:
    assert Fingerprints().of(tmp_path / "nothing") != Fingerprints().of(model)


def test_the_digests_of_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    fingerprints = Fingerprints()
    for number in range(3):
        file = tmp_path / f"weights-{number}"
        file.write_bytes(b"content")
        fingerprints.of(tmp_path)
        file.unlink()
    fingerprints.of(tmp_path)

    assert fingerprints._known == {tmp_path: {}}


def test_the_digest_of_a_file_that_has_not_changed_is_not_made_again(tmp_path: Path) -> None:
    fingerprints = Fingerprints()
    (tmp_path / "weights").write_bytes(b"content")
    first = fingerprints.of(tmp_path)
    (kept,) = fingerprints._known[tmp_path].values()

    assert fingerprints.of(tmp_path) == first
    assert next(iter(fingerprints._known[tmp_path].values())) is kept

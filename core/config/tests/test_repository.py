"""Reading model repositories: folders, versions and version policies."""

import os
from errno import EMFILE
from pathlib import Path

import pytest

from naiad_config import ModelVersionPolicy, VersionsAll, VersionsLatest, VersionsSpecific
from naiad_config.errors import NotFoundError
from naiad_config.repository import (
    find,
    is_folder_name,
    read_regular,
    scan,
    served_versions,
    version_numbers,
)

# Folders


def test_every_folder_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "README.md").write_text("not a model")

    assert scan([tmp_path]) == {"a": [tmp_path / "a"], "b": [tmp_path / "b"]}


def test_hidden_folders_and_caches_are_no_models(tmp_path: Path) -> None:
    for name in (".git", "..data", "__pycache__"):
        (tmp_path / name).mkdir()

    assert scan([tmp_path]) == {}


def test_a_name_in_several_repositories_comes_with_all_its_folders(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        (root / "m").mkdir(parents=True)

    assert scan(roots) == {"m": [root / "m" for root in roots]}
    assert find(roots, "m") == [root / "m" for root in roots]


def test_links_to_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "m").symlink_to(tmp_path / "elsewhere")

    assert list(scan([root])) == ["m"]


def test_links_that_lead_nowhere_count_and_links_to_files_do_not(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "not-to-follow").symlink_to("x" * 300)
    (tmp_path / "file").write_text("")
    (tmp_path / "to-file").symlink_to(tmp_path / "file")

    assert sorted(scan([tmp_path])) == ["dangling", "loop", "not-to-follow"]


def test_a_name_that_is_not_utf_8_is_shown_in_ascii(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/m\xff")  # noqa: PTH102 - a Path cannot hold the name

    assert list(scan([tmp_path])) == ["m\\xff"]


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_repository_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    if kind == "file":
        root.write_text("")

    with pytest.raises(NotFoundError, match=r"model repository '.*/root' cannot be read: .*; give an existing folder"):
        scan([root])


def test_a_repository_that_cannot_be_read_for_want_of_descriptors_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(EMFILE, os.strerror(EMFILE), str(path))

    monkeypatch.setattr(os, "scandir", refuse)

    with pytest.raises(NotFoundError, match="cannot be read: Too many open files; raise 'ulimit -n', the most open"):
        scan([tmp_path])


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_repository_that_moves_away_during_the_scan_cannot_be_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (tmp_path / "elsewhere").mkdir()
    root.mkdir()
    if kind == "folder":
        (root / "m").mkdir()
    else:
        (root / "m").symlink_to(tmp_path / "elsewhere")
    listed = os.scandir(root)
    root.rename(tmp_path / "moved")
    monkeypatch.setattr(os, "scandir", lambda _path: listed)

    with pytest.raises(NotFoundError, match=r"model repository '.*/root' cannot be read"):
        scan([root])


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", "/etc", "a\\b", "a\0b", "x" * 256, "ü" * 128, "\ud800" * 100]
)
def test_a_name_that_could_leave_the_repository_is_no_folder_name(tmp_path: Path, name: str) -> None:
    assert not is_folder_name(name)
    assert find([tmp_path], name) == []


@pytest.mark.parametrize("name", ["m", "m.onnx", "a b", "ü", "x" * 255, "..a", "-", "1"])
def test_other_names_are_folder_names(name: str) -> None:
    assert is_folder_name(name)


# Versions


def test_versions_are_folders_named_by_positive_integers(tmp_path: Path) -> None:
    for name in ("1", "10", "2", "03", "0", "-1", "1a", "x", "configs", "warmup", "²", "1.0", " 4"):
        (tmp_path / name).mkdir()
    (tmp_path / "7").write_text("a file")
    (tmp_path / "8").symlink_to(tmp_path / "8")
    (tmp_path / "9").symlink_to(tmp_path / "1")
    (tmp_path / "notes").symlink_to("x" * 300)  # a link that cannot be followed

    assert version_numbers(tmp_path) == [1, 2, 9, 10]


def test_a_folder_that_cannot_be_read_has_no_versions(tmp_path: Path) -> None:
    assert version_numbers(tmp_path / "nothing") == []


@pytest.mark.parametrize(
    ("policy", "served"),
    [
        (None, [7]),
        (ModelVersionPolicy(), [7]),
        (ModelVersionPolicy(latest=VersionsLatest(num_versions=2)), [5, 7]),
        (ModelVersionPolicy(latest=VersionsLatest(num_versions=0)), [7]),
        (ModelVersionPolicy(latest=VersionsLatest(num_versions=9)), [1, 5, 7]),
        (ModelVersionPolicy(all=VersionsAll()), [1, 5, 7]),
        (ModelVersionPolicy(specific=VersionsSpecific(versions=(5, 1, 6))), [1, 5]),
        (ModelVersionPolicy(specific=VersionsSpecific(versions=(6,))), []),
    ],
)
def test_the_policy_says_which_versions_are_served(policy: ModelVersionPolicy | None, served: list[int]) -> None:
    assert served_versions([1, 5, 7], policy) == served


def test_no_version_is_served_of_none() -> None:
    assert served_versions([], None) == []


# Files


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\0b")

    assert read_regular(tmp_path / "file") == b"a\0b"


def test_pipes_devices_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="it is not a regular file"):
            read_regular(path)

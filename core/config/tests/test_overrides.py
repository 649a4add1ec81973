"""Files that come with a load request: unpacked into a folder of their own, which no name leaves."""

import errno
import tempfile
from pathlib import Path

import pytest

from naiad_config.errors import InvalidArgumentError, UnavailableError
from naiad_config.overrides import unpacked


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_files_are_written_where_their_names_say() -> None:
    with unpacked({"1/model.fake": b"\0one", "1/deep/down/x": b"", "labels.txt": b"a"}) as folder:
        assert (Path(folder) / "1" / "model.fake").read_bytes() == b"\0one"
        assert (Path(folder) / "1" / "deep" / "down" / "x").read_bytes() == b""
        assert (Path(folder) / "labels.txt").read_bytes() == b"a"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "/",
        "..",
        "../x",
        "1/../../x",
        "1/..",
        "/etc/passwd",
        "1/a\0b",
        "1\\..\\x",
        "x" * 300,
        "1/" + "x" * 300,
    ],
)
def test_a_name_that_leaves_the_folder_is_refused_before_anything_is_written(temporary: Path, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must stay within model directory"):
        unpacked({"1/good": b"x", name: b"x"})

    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("names", [("1", "1/x"), ("1/x", "1")])
def test_a_file_that_is_a_folder_too_is_refused_and_nothing_is_left(temporary: Path, names: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be written: "):
        unpacked(dict.fromkeys(names, b""))

    assert list(temporary.iterdir()) == []


def test_a_path_longer_than_paths_can_be_is_refused_and_nothing_is_left(temporary: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be written: File name too long"):
        unpacked({"/".join(["x" * 200] * 30): b""})

    assert list(temporary.iterdir()) == []


def test_a_full_disk_is_an_error_that_names_the_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_bytes(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)

    with pytest.raises(UnavailableError, match=f"the 3 bytes .* to '{temporary}': No space left on device; make room"):
        unpacked({"1/weights": b"abc"})

    assert list(temporary.iterdir()) == []


def test_a_folder_for_files_that_cannot_be_made_is_an_error_that_names_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))

    with pytest.raises(UnavailableError, match=r"nowhere.*: No such file or directory; make room there, or set TMPDIR"):
        unpacked({"1/weights": b"abc"})


def test_a_model_named_configs_keeps_its_configuration_beside_the_files(tmp_path: Path) -> None:
    model = tmp_path / "configs"
    (model / "configs").mkdir(parents=True)
    (model / "config.pbtxt").write_text("agents")
    (model / "configs" / "other.pbtxt").write_text("more agents")

    with unpacked({"1/model": b"weights"}, [model]) as folder:
        written = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())

    assert written == ["1/model", "config.pbtxt", "configs/other.pbtxt"]

"""Archives of environments, with the filters of this Python's tarfile and without any."""

import io
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from naiad_process_workers.archives import unpack

Archive = Callable[..., Path]


@pytest.fixture(params=[True, False], ids=["filters", "no_filters"], autouse=True)
def filters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has filters since 3.11.4, and since 3.12 it warns when none is given."""
    if not request.param:
        if sys.version_info >= (3, 12):
            pytest.skip("every such Python has filters")
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    elif not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python has no filters")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Write an archive; a member is a file, or one with the `type` and `linkname` of the member."""

    def written(*members: tuple[str, bytes, str], compression: str = "gz") -> Path:
        path = tmp_path / "archive"
        with tarfile.open(path, f"w:{compression}") as content:
            for name, kind, linkname in members:
                member = tarfile.TarInfo(name)
                member.type, member.linkname, member.mode, member.uid = kind, linkname, 0o777, 4711
                member.size = 7 if kind == tarfile.REGTYPE else 0
                content.addfile(member, io.BytesIO(b"content"))
        return path

    return written


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_files_folders_and_links_within_are_unpacked(archive: Archive, tmp_path: Path, compression: str) -> None:
    members = (
        ("bin", tarfile.DIRTYPE, ""),
        ("bin/python3", tarfile.REGTYPE, ""),
        ("bin/python", tarfile.SYMTYPE, "python3"),
        ("lib/python", tarfile.SYMTYPE, "../bin/python3"),
        ("lib/again", tarfile.LNKTYPE, "bin/python3"),
        ("/absolute", tarfile.REGTYPE, ""),
    )
    unpack(archive(*members, compression=compression), tmp_path / "folder")

    for name in ("bin/python", "lib/python", "lib/again", "absolute"):
        assert (tmp_path / "folder" / name).read_bytes() == b"content"
    status = (tmp_path / "folder" / "bin" / "python").stat()
    assert status.st_mode & 0o777 == 0o755
    assert status.st_uid == tmp_path.stat().st_uid


@pytest.mark.parametrize(
    "members",
    [
        [("../outside", tarfile.REGTYPE, "")],
        [("lib/../../outside", tarfile.REGTYPE, "")],
        [("outside", tarfile.SYMTYPE, "../outside")],
        [("outside", tarfile.SYMTYPE, "/etc/passwd")],
        [("outside", tarfile.LNKTYPE, "../outside")],
        [("lib", tarfile.SYMTYPE, ".."), ("lib/outside", tarfile.REGTYPE, "")],
        [("outside", tarfile.FIFOTYPE, "")],
        [("outside", tarfile.CHRTYPE, "")],
    ],
)
def test_what_is_outside_or_special_is_refused(
    archive: Archive, tmp_path: Path, members: list[tuple[str, bytes, str]]
) -> None:
    (tmp_path / "outside").write_text("as it was")

    with pytest.raises(tarfile.TarError, match=r"outside|absolute|special"):
        unpack(archive(*members), tmp_path / "folder")

    assert (tmp_path / "outside").read_text() == "as it was"


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
def test_an_archive_that_is_cut_off_or_broken_is_refused(archive: Archive, tmp_path: Path, compression: str) -> None:
    path = archive(*[(f"file{number}", tarfile.REGTYPE, "") for number in range(100)], compression=compression)
    content = path.read_bytes()

    for broken in (content[: len(content) // 2], content[:40] + bytes(40) + content[80:]):
        path.write_bytes(broken)
        with pytest.raises((OSError, tarfile.TarError)):
            unpack(path, tmp_path / "folder")

"""Archives of environments: unpack one without writing outside of its folder."""

import lzma
import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of tar, compressed or not.

    Raises OSError and TarError, also for a member that would lie outside of the folder or link to what does.
    """
    try:
        with tarfile.open(archive) as content:
            if hasattr(tarfile, "data_filter"):
                content.extractall(folder, filter="data")
            else:
                content.extractall(folder, _confined(content, folder))  # noqa: S202 - checked
    except (EOFError, zlib.error, lzma.LZMAError) as error:  # the archive is cut off or broken
        raise tarfile.ReadError(str(error)) from error


def _confined(members: Iterable[tarfile.TarInfo], folder: Path) -> Iterator[tarfile.TarInfo]:
    """The members, each checked before it is written: Python has filters for this since 3.11.4 only."""
    root = folder.resolve()
    for member in members:
        member.name = member.name.lstrip("/")
        path = root / member.name
        paths = [path.resolve()]
        if member.issym():
            paths.append((path.parent / member.linkname).resolve())
        elif member.islnk():
            paths.append((root / member.linkname).resolve())
        elif not (member.isreg() or member.isdir()):
            raise tarfile.ExtractError(f"'{member.name}' is a special file")
        if not all(each.is_relative_to(root) for each in paths):
            raise tarfile.ExtractError(f"'{member.name}' is outside the destination, or a link to what is")
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        member.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0o600)
        yield member

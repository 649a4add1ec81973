"""The files that come with a load request, in a folder of their own."""

import errno
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from naiad._kernel.repository import is_folder_name
from naiad.errors import InvalidArgumentError

_REQUESTS_FAULT = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)


def unpacked(files: Mapping[str, bytes]) -> "TemporaryDirectory[str]":
    """A new folder with these files (`1/model.onnx`); whoever takes it cleans it up.

    Raises InvalidArgumentError for a path that would leave the folder, before anything is written, and for one that
    cannot be written because of its own name or another's.
    """
    for name in files:
        parts = Path(name).parts
        if not parts or not all(map(is_folder_name, parts)):
            raise InvalidArgumentError(f"file override '{name[:80]}' must stay within model directory.")
    folder = TemporaryDirectory(prefix="naiad-", ignore_cleanup_errors=True)
    try:
        for name, content in files.items():
            _write(Path(folder.name), name, content)
    except BaseException:
        folder.cleanup()
        raise
    return folder


def _write(directory: Path, name: str, content: bytes) -> None:
    target = directory / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except OSError as error:
        if error.errno not in _REQUESTS_FAULT:
            raise
        raise InvalidArgumentError(f"file override '{name[:80]}' cannot be written: {error.strerror}") from error

"""File overrides of a load request, written into a folder of their own."""

import errno
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from naiad_config.errors import InvalidArgumentError, UnavailableError
from naiad_config.repository import is_folder_name
from naiad_config.stores import Location, folder_of
from naiad_config.uploads import Files

_REQUESTS_FAULT = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)


def unpacked(files: Files, folders: Sequence[Location] = ()) -> "TemporaryDirectory[str]":
    """A new folder with these files (`1/model.onnx`), which the caller cleans up.

    The configurations of the model's own `folders` are there too, for the agents that they name: files that come with
    a request are guarded as the files that they replace.

    Raises InvalidArgumentError for a path that would leave the folder, before anything is written, and for one that
    cannot be written because of its own name or another's; UnavailableError when the disk is full or refuses.
    """
    for name in files:
        parts = Path(name).parts
        if not parts or not all(map(is_folder_name, parts)):
            raise InvalidArgumentError(f"file override '{name[:80]}' must stay within model directory.")
    try:
        folder = TemporaryDirectory(prefix="naiad-", ignore_cleanup_errors=True)
    except OSError as error:
        raise _unwritten(Path(gettempdir()), files, error) from error
    try:
        for name, content in files.items():
            _write(Path(folder.name), name, content)
        for own in map(folder_of, folders):
            for path in (*own.glob("config.pbtxt"), *own.glob("configs/*.pbtxt")):
                _write(Path(folder.name), str(path.relative_to(own)), path.read_bytes())
    except OSError as error:
        folder.cleanup()
        raise _unwritten(Path(folder.name).parent, files, error) from error
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


def _unwritten(folder: Path, files: Files, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"the {sum(map(len, files.values()))} bytes of the file overrides cannot be written to '{folder}': "
        f"{error.strerror}; make room there, or set TMPDIR to a folder that has it"
    )

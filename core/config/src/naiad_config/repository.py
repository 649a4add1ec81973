"""Model repositories on disk: the folders of models, their versions, and which of these the version policy serves."""

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from naiad_config.errors import InvalidArgumentError, NotFoundError, advice_for
from naiad_config.placement import ModelVersionPolicy

MAX_NAME_LENGTH = 255
"""The longest name of a folder on the file systems in use."""


def scan(roots: Sequence[Path]) -> dict[str, list[Path]]:
    """The model folders by model name; a name that several repositories have comes with all its folders.

    A symbolic link that leads nowhere, or where this process may not follow, counts as a folder: its own load says why
    it fails. Bytes of a name that are not UTF-8 are shown with a backslash. Raises NotFoundError when a repository is
    no folder that can be read.
    """
    folders: dict[str, list[Path]] = {}
    for root in roots:
        try:
            with os.scandir(root) as listed:
                entries = sorted(filter(_is_meant_as_folder, listed), key=lambda entry: entry.name)
            root.stat()  # a repository that was moved away meanwhile: what it has lost is not deleted
        except OSError as error:
            advice = advice_for(error) or "give an existing folder of models"
            raise NotFoundError(f"model repository '{root}' cannot be read: {error.strerror}; {advice}") from error
        for entry in entries:
            if not entry.name.startswith((".", "__")):
                name = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
                folders.setdefault(name, []).append(Path(entry.path))
    return folders


def find(roots: Sequence[Path], name: str) -> list[Path]:
    """The folders of one model; none for a name that cannot be a folder's. A backslash is a letter like others here."""
    return [root / name for root in roots if is_folder_name(name.replace("\\", "_")) and is_folder(root / name)]


def model_name(name: str) -> str:
    """The name of a model that may be loaded, without blanks around it. Raises InvalidArgumentError."""
    name = name.strip()
    if not name:
        raise InvalidArgumentError("Model name cannot be empty. Please enter a valid name to deploy.")
    if not is_folder_name(name):
        raise InvalidArgumentError(
            f"invalid model name '{name[:80]}', model name must not contain path traversal characters or be "
            "longer than a folder's name can be"
        )
    return name


def is_folder_name(name: str) -> bool:
    """Whether the name stays inside its repository: no separator, no NUL, not `.` or `..`, not too long."""
    return (
        bool(name)
        and name not in (".", "..")
        and not any(bad in name for bad in ("/", "\\", "\0"))
        and len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME_LENGTH
    )


def is_folder(path: Path) -> bool:
    """Whether the path leads to a folder; not where this process may not follow a link."""
    try:
        return path.is_dir()
    except OSError:
        return False


def version_numbers(directory: Path) -> list[int]:
    """The versions in a model folder, ascending: folders named by a positive integer without leading zero."""
    try:
        names = [path.name for path in directory.iterdir() if is_folder(path)]
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isascii() and name.isdigit() and name[0] != "0")


def served_versions(available: Sequence[int], policy: ModelVersionPolicy | None) -> list[int]:
    """The versions to serve of those available: the latest one, unless the policy says otherwise."""
    if policy is not None and policy.all is not None:
        return list(available)
    if policy is not None and policy.specific is not None:
        return [version for version in available if version in policy.specific.versions]
    count = policy.latest.num_versions if policy is not None and policy.latest is not None else 1
    return list(available)[-max(1, count) :]


def first_existing(candidates: Sequence[Path], folder: Path, model: str) -> Path:
    """The first of these files or folders of a model that exists.

    Raises NotFoundError, which names the first and lists the version folder, `folder`.
    """
    for path in candidates:
        if path.exists():
            return path
    content = ", ".join(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ""
    raise NotFoundError(
        f"unable to find '{candidates[0]}' for model '{model}': "
        + (f"the version folder has {content}; " if content else "the version folder is empty; ")
        + "put the model there, or name it with default_model_filename"
    )


def path_inside(directory: Path, path: str | Path, subject: str) -> Path:
    """That path, relative to the model's folder, with all links resolved.

    Raises InvalidArgumentError, which begins with `subject`, for a path outside of the folder.
    """
    inside = (directory / path).resolve()
    if not inside.is_relative_to(directory.resolve()):
        raise InvalidArgumentError(f"{subject} leaves the model's folder; put the file into '{directory}'")
    return inside


def read_regular(path: Path) -> bytes:
    """The content of a file. Raises OSError, also for a pipe or a device, which could keep its reader forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.read_bytes()


def _is_meant_as_folder(entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_dir()
    path = Path(entry.path)
    try:
        return path.is_dir() or not path.exists()
    except OSError:  # this process may not follow the link
        return True

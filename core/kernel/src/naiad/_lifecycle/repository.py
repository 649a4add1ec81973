"""The model repositories on disk: model folders, versions, and fingerprints of their content."""

import asyncio
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from naiad._engine.bounded_threads import BoundedThreads
from naiad.errors import NotFoundError
from naiad.reports import IndexEntry
from naiad_config import ModelVersionPolicy

MAX_NAME_LENGTH = 255
"""The longest name of a folder on the file systems in use."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model is loaded from: its folder, or the configuration and files of the load request."""

    name: str
    directory: Path
    config_override: str = ""
    file_overrides: Mapping[str, bytes] = field(default_factory=dict)


def scan(roots: Sequence[Path]) -> dict[str, list[Path]]:
    """The model folders by model name; a name that several repositories have comes with all its folders.

    A symbolic link that leads nowhere counts as a folder, because it was meant as one; bytes of a name that are not
    UTF-8 are shown with a backslash. Raises NotFoundError when a repository is no folder that can be read.
    """
    folders: dict[str, list[Path]] = {}
    for root in roots:
        try:
            with os.scandir(root) as listed:
                entries = sorted(filter(_is_meant_as_folder, listed), key=lambda entry: entry.name)
            root.stat()  # a repository that was moved away meanwhile: what it has lost is not deleted
        except OSError as error:
            raise NotFoundError(
                f"model repository '{root}' cannot be read: {error.strerror}; give an existing folder of models"
            ) from error
        for entry in entries:
            if not entry.name.startswith((".", "__")):
                name = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
                folders.setdefault(name, []).append(Path(entry.path))
    return folders


def find(roots: Sequence[Path], name: str) -> list[Path]:
    """The folders of one model; none for a name that cannot be a folder's."""
    return [root / name for root in roots if is_folder_name(name) and (root / name).is_dir()]


def is_folder_name(name: str) -> bool:
    """Whether the name stays inside its repository: no separator, no NUL, not `.` or `..`, not too long."""
    return (
        bool(name)
        and name not in (".", "..")
        and not any(bad in name for bad in ("/", "\\", "\0"))
        and len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME_LENGTH
    )


def version_numbers(directory: Path) -> list[int]:
    """The versions in a model folder, ascending: folders named by a positive integer without leading zero."""
    try:
        names = [path.name for path in directory.iterdir() if path.is_dir()]
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


def read_regular(path: Path) -> bytes:
    """The content of a file. Raises OSError, also for a pipe or a device, which could keep its reader forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return path.read_bytes()


def _is_meant_as_folder(entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_dir()
    path = Path(entry.path)
    return path.is_dir() or not path.exists()


class RepositoryReader:
    """Reads the repositories `roots` on `threads` of its own. For the event loop's thread.

    `index` has the models of the last read, by name in order; `was_read` says whether any read succeeded.
    """

    def __init__(self, roots: Sequence[Path], compares_content: bool) -> None:
        self.roots = roots
        self.index: Mapping[str, IndexEntry] = {}
        self.was_read = False
        self.threads = BoundedThreads("naiad-disk", 4)
        self.fingerprints = Fingerprints()
        self._compares_content = compares_content
        self._folders: Mapping[str, Sequence[Path]] = {}
        self._reading, self._reads = asyncio.Lock(), 0

    async def read(self) -> Mapping[str, Sequence[Path]]:
        """The folders of all models, by name. Raises NotFoundError for a repository that cannot be read.

        Callers that come during a read share the next one: the read under way may have missed a new folder.
        """
        next_read = self._reads + 1
        async with self._reading:
            if self._reads < next_read:
                self._reads += 1
                self._folders, self.index = await self.threads.run(_read, self.roots)
                self.was_read = True
            return self._folders

    async def find(self, name: str) -> list[Path]:
        """The folders of one model."""
        return await self.threads.run(find, self.roots, name)

    async def fingerprint(self, folders: Sequence[Path]) -> str | None:
        """A digest of the folders, or None where it is not compared: reading all weights would double the start."""
        if not self._compares_content:
            return None
        return await self.threads.run(lambda: "\n".join(map(self.fingerprints.of, folders)))

    def forget(self, name: str) -> None:
        """Drop what is remembered of a model that is in no repository."""
        self.fingerprints.forget(root / name for root in self.roots)


def _read(roots: Sequence[Path]) -> tuple[Mapping[str, Sequence[Path]], Mapping[str, IndexEntry]]:
    folders = scan(roots)
    return folders, {name: IndexEntry(name) for name in sorted(folders)}


_Digests = dict[str, tuple[tuple[int, int, int], bytes]]
"""The state and the digest of each file."""


class Fingerprints:
    """Digests of model folders, which read only files whose size or times have changed.

    For any thread, but one at a time for the same folder.
    """

    def __init__(self) -> None:
        self._known: dict[Path, _Digests] = {}

    def of(self, directory: Path) -> str:
        """A digest over the names and contents of all files and folders below `directory`."""
        digest = hashlib.blake2b(digest_size=16)
        known = self._known.get(directory, {})
        read: _Digests = {}
        seen: set[str] = set()
        for folder, folders, files in os.walk(directory, followlinks=True):
            real = os.path.realpath(folder)
            folders[:] = [] if real in seen else sorted(name for name in folders if name != "__pycache__")
            seen.add(real)
            digest.update(f"{os.path.relpath(folder, directory)}\0{len(files)}\0".encode(errors="surrogateescape"))
            for name in sorted(files):
                path = os.path.join(folder, name)  # noqa: PTH118 - os.walk speaks strings
                digest.update(name.encode(errors="surrogateescape") + b"\0" + _digest_of(path, known, read))
        self._known[directory] = read
        return digest.hexdigest()

    def forget(self, directories: Iterable[Path]) -> None:
        """Drop the digests of these folders."""
        for directory in directories:
            self._known.pop(directory, None)


def _digest_of(path: str, known: _Digests, read: _Digests) -> bytes:
    """The digest of a file, the known one if the file has not changed; kept in `read`."""
    try:
        status = os.stat(path)  # noqa: PTH116 - os.walk speaks strings
        if not stat.S_ISREG(status.st_mode):
            return str(status.st_mode).encode()
        state = (status.st_size, status.st_mtime_ns, status.st_ino)
        entry = known.get(path)
        if entry is None or entry[0] != state:
            with open(path, "rb") as file:  # noqa: PTH123 - os.walk speaks strings
                entry = (state, hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest())
    except OSError as error:
        return str(error.errno).encode()
    read[path] = entry
    return entry[1]

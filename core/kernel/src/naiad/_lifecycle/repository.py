"""The model repositories of a server: which models they have, and fingerprints of what lies in their folders."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from naiad._engine.bounded_threads import BoundedThreads
from naiad.errors import NotFoundError
from naiad.reports import IndexEntry
from naiad_config.repository import find, scan


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


def not_found(name: str) -> NotFoundError:
    """The error for a model to load that no repository has."""
    return NotFoundError(
        f"failed to load '{name}', failed to poll from model repository: there is no folder of that name in it"
    )


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

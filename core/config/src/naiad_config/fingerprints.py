"""Fingerprints of model folders: digests of all that lies in them, for servers that follow changes on disk."""

import hashlib
import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from naiad_config.stores import Location, Root

_Digests = dict[str, tuple[tuple[int, int, int], bytes]]
"""The state and the digest of each file."""


class Fingerprints:
    """Digests of model folders, which read only files whose size or times have changed.

    For any thread, but one at a time for the same folder.
    """

    def __init__(self) -> None:
        self._known: dict[Path, _Digests] = {}

    @property
    def folders(self) -> Collection[Path]:
        """The folders whose digests are kept."""
        return self._known.keys()

    def of(self, directory: Location) -> str:
        """A digest over the names and contents of all files and folders below `directory`; a store has one itself."""
        if not isinstance(directory, Path):
            return directory.digest
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

    def forget(self, roots: Sequence[Root], name: str) -> None:
        """Drop the digests of the folders of that model."""
        for root in roots:
            if isinstance(root, Path):
                self._known.pop(root / name, None)


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

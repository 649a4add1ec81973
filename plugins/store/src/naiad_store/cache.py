"""The local cache of downloaded models: objects by their address and etag, and folders of links to them.

    objects/<key>            a complete object
    partial/<key>            one that is downloaded now, or was when a process ended
    models/<digest>/         the folder of a model, of hard links to objects; what is here never changes

Several servers may share a cache: each object is downloaded under a lock, and each folder appears at once.
"""

import fcntl
import os
import shutil
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from naiad.errors import UnavailableError
from naiad_store.sources import StoredObject


class Download(Protocol):
    """Writes an object to a file from the file's end on. Raises NaiadError."""

    def __call__(self, stored: StoredObject, file: BinaryIO) -> None:
        """Block until all of it is written."""


class ModelCache:
    """A cache in the folder `root` of about `limit` bytes; 0 is no limit.

    The folders that this process has fetched last, two of each model, stay whatever the limit says.
    """

    def __init__(self, root: Path, limit: int) -> None:
        self.root = root
        self._limit = limit
        self._in_use: dict[str, list[int]] = {}
        weakref.finalize(self, _close, self._in_use)

    def folder(self, model: str, digest: str, objects: Mapping[str, StoredObject], download: Download) -> Path:
        """The folder with these objects by their paths in it; what is not in the cache is downloaded.

        `digest` stands for the objects, and `model` for the model in this process. Raises UnavailableError for a disk
        that refuses, and what `download` raises.
        """
        folder = self.root / "models" / digest
        try:
            for part in ("objects", "partial", "models", "locks"):
                (self.root / part).mkdir(parents=True, exist_ok=True)
            lock = self._use(digest)
            try:
                if not folder.is_dir():
                    paths = {path: self._object(stored, download) for path, stored in objects.items()}
                    self._link(folder, paths)
            except BaseException:
                os.close(lock)
                raise
            used = self._in_use.setdefault(model, [])
            used.append(lock)
            while len(used) > 2:
                os.close(used.pop(0))
            os.utime(folder)
            self._evict()
        except OSError as error:
            raise UnavailableError(
                f"the model cache '{self.root}' cannot be used: {error.strerror}; make room there, or name another "
                "folder with --store-cache"
            ) from error
        return folder

    def _use(self, digest: str) -> int:
        """The descriptor of a shared lock on a folder, which keeps it from being evicted until it is closed."""
        lock = os.open(self.root / "locks" / digest, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock

    def _object(self, stored: StoredObject, download: Download) -> Path:
        path, partial = self.root / "objects" / stored.key, self.root / "partial" / stored.key
        if path.exists():
            return path
        with partial.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists():  # another process has downloaded it meanwhile
                return path
            if file.seek(0, os.SEEK_END) > stored.size:
                file.truncate(0)
            download(stored, file)
            file.flush()
            os.fsync(file.fileno())
            if os.fstat(file.fileno()).st_size != stored.size:
                partial.unlink()
                raise UnavailableError(f"'{stored.path}' came with another size than its {stored.size} bytes")
            partial.replace(path)
        return path

    def _link(self, folder: Path, paths: Mapping[str, Path]) -> None:
        """Make the folder of links beside, and rename it."""
        new = folder.with_name(f"{folder.name}.{os.getpid()}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for name, path in paths.items():
            target = new / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target)
        with suppress(OSError):  # another process was first
            new.rename(folder)
        shutil.rmtree(new, ignore_errors=True)

    def _evict(self) -> None:
        """Remove the folders that were used longest ago, and objects without a folder, until the limit holds."""
        if not self._limit:
            return
        folders = sorted((self.root / "models").iterdir(), key=lambda path: path.stat().st_mtime)
        for folder in folders:
            if self._size() <= self._limit:
                return
            with _unused(self.root / "locks" / folder.name) as unused:
                if unused:
                    shutil.rmtree(folder, ignore_errors=True)
                    self._remove_unlinked()

    def _size(self) -> int:
        return sum(path.stat().st_size for path in (self.root / "objects").iterdir())

    def _remove_unlinked(self) -> None:
        for path in (self.root / "objects").iterdir():
            if path.stat().st_nlink == 1:
                path.unlink(missing_ok=True)


def _close(locks: Mapping[str, list[int]]) -> None:
    for lock in [lock for each in locks.values() for lock in each]:
        os.close(lock)


@contextmanager
def _unused(path: Path) -> Iterator[bool]:
    """Whether no process uses the folder of that lock; none begins to during the block."""
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True

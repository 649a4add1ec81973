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
from threading import get_ident
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
        self._in_use: dict[str, dict[str, int]] = {}  # descriptors by model and digest
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
                    self._assemble(folder, objects, download)
            except BaseException:
                os.close(lock)
                raise
            self._keep(model, digest, lock)
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

    def _keep(self, model: str, digest: str, lock: int) -> None:
        """Hold the lock until two other folders of the model are fetched."""
        used = self._in_use.setdefault(model, {})
        if digest in used:
            os.close(used.pop(digest))
        used[digest] = lock
        while len(used) > 2:
            os.close(used.pop(next(iter(used))))

    def _assemble(self, folder: Path, objects: Mapping[str, StoredObject], download: Download) -> None:
        """Make the folder of links under another name, and rename it."""
        new = folder.with_name(f"{folder.name}.{os.getpid()}.{get_ident()}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        try:
            for name, stored in objects.items():
                target = new / name
                target.parent.mkdir(parents=True, exist_ok=True)
                self._link(stored, target, download)
            with suppress(OSError):  # another process was first
                new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _link(self, stored: StoredObject, target: Path, download: Download) -> None:
        """Link an object, which is downloaded first where it is not in the cache. No object is there without a link."""
        path, partial = self.root / "objects" / stored.key, self.root / "partial" / stored.key
        while not _linked(path, target):
            with partial.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not _is_at(partial, file):  # another process has finished it, or given it up, meanwhile
                    continue
                file.seek(0, os.SEEK_END)  # another process may have written meanwhile
                download(stored, file)
                file.flush()
                os.fsync(file.fileno())
                if os.fstat(file.fileno()).st_size != stored.size:
                    partial.unlink()
                    raise UnavailableError(f"'{stored.path}' came with another size than its {stored.size} bytes")
                os.link(partial, target)
                partial.replace(path)
                return

    def _evict(self) -> None:
        """Remove the folders that were used longest ago, and what no folder uses, until the limit holds."""
        if not self._limit or self._size() <= self._limit:
            return
        for folder, _ in sorted(_entries(self.root / "models"), key=lambda entry: entry[1].st_mtime):
            with _unused(self.root / "locks" / folder.name.partition(".")[0]) as unused:
                if unused:
                    _remove(folder)
            self._remove_unlinked()
            if self._size() <= self._limit:
                return

    def _size(self) -> int:
        return sum(status.st_size for part in ("objects", "partial") for _, status in _entries(self.root / part))

    def _remove_unlinked(self) -> None:
        for path, status in _entries(self.root / "objects"):
            if status.st_nlink == 1:
                path.unlink(missing_ok=True)
        for path, _ in _entries(self.root / "partial"):
            with _unused(path) as unused:
                if unused:
                    path.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    """Remove a folder under another name: with its own it has all of its files, or is not there."""
    gone = folder.with_name(f"{folder.name.partition('.')[0]}.gone.new")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):  # it is that one, or that one cannot be removed
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _linked(path: Path, target: Path) -> bool:
    """Link an object of the cache; False where it is not there."""
    try:
        os.link(path, target)
    except FileNotFoundError:
        return False
    return True


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether that open file is still the one with that path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _entries(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """What is in a folder, but for what other processes remove meanwhile."""
    entries = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            entries.append((path, path.stat()))
    return entries


def _close(locks: Mapping[str, Mapping[str, int]]) -> None:
    for lock in [lock for each in locks.values() for lock in each.values()]:
        os.close(lock)


@contextmanager
def _unused(path: Path) -> Iterator[bool]:
    """Whether no process holds the lock of that file; none gets it during the block."""
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True

"""The cache of environments: each is built once, by one process at a time, and used only when it is complete."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_COMPLETE = ".naiad-complete"
"""The file in a folder of the cache that is written last: without it the folder is built anew."""


def cached_environment(key: str, build: Callable[[Path, int], None]) -> Path:
    """The folder of the environment that `key` describes; `build(folder, lock)` makes it where there is none.

    Blocks while another thread or process builds it. The descriptor `lock` is for the programs that `build` starts:
    while one of them lives, no other process touches the folder, even if this one has ended. Raises what `build`
    raises, and OSError.
    """
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    folder = environments_folder() / name
    complete = folder / _COMPLETE
    if complete.is_file():
        return folder
    with _locked(_cache() / "locks" / name) as lock:
        if complete.is_file():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            build(folder, lock)
            complete.write_text(key, encoding="utf-8", errors="surrogateescape")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def environments_folder() -> Path:
    """The folder of all environments that were built."""
    return _cache() / "environments"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "naiad"


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold the lock of that file, which stays there: to remove it would let two processes hold different files."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()

"""Fingerprint of a model: a digest of its folder, the same in all servers that share a cache."""

import hashlib
import os
import stat
from pathlib import Path


def fingerprint(directory: Path) -> str:
    """A digest over the names and contents of all files and folders below `directory`, links followed.

    Reads every file, but for `__pycache__`. A file that cannot be read counts with the reason.
    """
    digest = hashlib.blake2b(digest_size=16)
    seen: set[str] = set()
    for folder, folders, files in os.walk(directory, followlinks=True):
        real = os.path.realpath(folder)
        folders[:] = [] if real in seen else sorted(name for name in folders if name != "__pycache__")
        seen.add(real)
        digest.update(f"{os.path.relpath(folder, directory)}\0{len(files)}\0".encode(errors="surrogateescape"))
        for name in sorted(files):
            path = os.path.join(folder, name)  # noqa: PTH118 - os.walk has strings
            digest.update(name.encode(errors="surrogateescape") + b"\0" + _digest_of(path))
    return digest.hexdigest()


def _digest_of(path: str) -> bytes:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - os.walk has strings
        if not stat.S_ISREG(mode):
            return str(mode).encode()
        with open(path, "rb") as file:  # noqa: PTH123 - os.walk has strings
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()
    except OSError as error:
        return str(error.errno).encode()

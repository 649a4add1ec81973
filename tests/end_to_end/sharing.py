"""Tensors in shared memory, as a client names them, and what a server holds open."""

from pathlib import Path
from typing import Any

import tritonclient.http as triton

from .running import Running

LARGE = 150_000


def descriptors(running: Running) -> int:
    """How many files and connections it has open, but for connections that are about to be closed."""
    links = [path.readlink() for path in Path(f"/proc/{running.pid}/fd").iterdir() if path.is_symlink()]
    return sum("socket:" not in str(link) for link in links)


def key_of(region: Any) -> str:
    key: str = region._shm_key
    return key


def file_of(region: Any) -> Path:
    return Path("/dev/shm") / key_of(region).lstrip("/")


def placed(name: str, shape: tuple[int, ...], datatype: str, region: str, size: int, offset: int = 0) -> Any:
    tensor = triton.InferInput(name, list(shape), datatype)
    tensor.set_shared_memory(region, size, offset)
    return tensor


def output_in(name: str, region: str, size: int, offset: int = 0) -> Any:
    output = triton.InferRequestedOutput(name)
    output.set_shared_memory(region, size, offset)
    return output

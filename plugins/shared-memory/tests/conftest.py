"""Segments of shared memory as a client makes them, and the regions of a server."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from naiad_shared_memory.regions import SharedMemory


class Segment:
    """A POSIX shared memory segment with that content; `key` is what a client registers."""

    def __init__(self, content: bytes) -> None:
        self.key = f"/naiad_test_{uuid4().hex}"
        self.path = Path("/dev/shm") / self.key.lstrip("/")
        self.path.write_bytes(content)

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()

    def resize(self, byte_size: int) -> None:
        os.truncate(self.path, byte_size)

    def unlink(self) -> None:
        self.path.unlink(missing_ok=True)


@pytest.fixture
def make_segment() -> Iterator[Callable[[bytes], Segment]]:
    """Make segments; they are unlinked with the test."""
    segments: list[Segment] = []

    def make(content: bytes = bytes(range(64))) -> Segment:
        segments.append(Segment(content))
        return segments[-1]

    yield make
    for segment in segments:
        segment.unlink()


@pytest.fixture
def memory() -> SharedMemory:
    """The regions of a server that lets clients register them, and has no GPU."""
    return SharedMemory(allowed=True)


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    """The garbage of other modules is collected, and no collection closes its descriptors in the tests of this one."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def count_descriptors(collected: None) -> Callable[[], int]:
    """Count the open descriptors of this process, once those of other modules are closed."""
    return lambda: len(list(Path("/proc/self/fd").iterdir()))

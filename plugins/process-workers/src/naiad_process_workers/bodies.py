"""Memory for the bodies of requests to isolated models: arenas that a frontend fills and the model's processes read.

The arenas belong to a model, not to a process, because which of its instances executes a request is decided later. An
array over a body is sent as the location of its bytes; the server keeps the array until the process has no view of it.
"""

import itertools
import threading
from asyncio import AbstractEventLoop, get_running_loop
from collections import deque
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet, WeakValueDictionary, ref

import numpy as np

from naiad.extend import LoadedVersion
from naiad.server import ServerApi
from naiad_config import ModelConfig
from naiad_kit.frontends.body_memory import SMALLEST_BODY, BodyMemory
from naiad_process_workers.arenas import FIRST_SHARED, LARGE_BLOCK, Arena, Freed, OwnArenas, block_array
from naiad_process_workers.large_blocks import LargeBlocks

MOST_BYTES = 256 << 20
"""The arenas of one model: bodies beyond it are received elsewhere, and copied."""

_next_number = itertools.count(FIRST_SHARED).__next__


class ArenaReader(Protocol):
    """A connection to a process that maps arenas."""

    def retire_closed(self) -> None:
        """Have the process unmap those that are closed."""
        ...


class BodyArenas:
    """The arenas of one model. For any thread.

    With the `loop` of the server, those without bodies are closed soon; else with the next body.
    """

    def __init__(self, loop: AbstractEventLoop | None = None) -> None:
        self._arenas = OwnArenas(_next_number)
        self._freed: deque[tuple[int, int]] = deque()
        self._readers: WeakSet[ArenaReader] = WeakSet()
        arenas = ref(self)
        self._large: Freed = self._freed if loop is None else LargeBlocks(self._freed, loop, lambda: _collect(arenas()))

    def reserve(self, size: int) -> memoryview | None:
        """Writable memory of `size` bytes, which is free when the last view of it is gone; None without room."""
        self.collect()
        if self._arenas.size + size > MOST_BYTES:
            return None
        try:
            arena, offset = self._arenas.allocate(size, None, lambda new: None)
        except OSError:
            return None
        freed = self._freed if size < LARGE_BLOCK else self._large
        array = block_array(arena.bytes, (arena.number, offset), freed, offset, size)
        return memoryview(array)  # type: ignore[arg-type]

    def collect(self) -> None:
        """Take the blocks back whose bodies are gone."""
        blocks: list[tuple[int, int]] = []
        try:
            while self._freed:
                blocks.append(self._freed.popleft())
        except IndexError:  # another thread has taken the rest
            pass
        if blocks and self._arenas.free(blocks):
            for reader in list(self._readers):
                reader.retire_closed()

    def read_by(self, reader: ArenaReader) -> None:
        """Have that reader retire arenas that are closed from now on."""
        self._readers.add(reader)

    def locate(self, array: np.ndarray) -> tuple[Arena, int] | None:
        """The arena that has the bytes of a contiguous array, and their offset in it."""
        return self._arenas.locate(array.__array_interface__["data"][0], array.nbytes)

    def __del__(self) -> None:
        self._arenas.close()  # bodies that have come stay for as long as they are read


def _collect(arenas: BodyArenas | None) -> None:
    if arenas is not None:
        arenas.collect()


class BodyPart:
    """The arenas of one model version, once an isolated version has asked for them; versions of a model share them."""

    def __init__(
        self,
        name: str,
        all_arenas: "WeakValueDictionary[str, BodyArenas]",
        lock: threading.Lock,
        make: Callable[[], BodyArenas],
    ) -> None:
        self._name = name
        self._all = all_arenas
        self._lock = lock
        self._make = make
        self._arenas: BodyArenas | None = None

    def open(self) -> BodyArenas:
        """The arenas of the model, from now on."""
        with self._lock:
            arenas = self._arenas = self._all.get(self._name) or self._make()
            self._all[self._name] = arenas
        return arenas

    def loaded(self, version: LoadedVersion) -> None:
        """See `VersionPart`."""

    def close(self) -> None:
        """See `VersionPart`: the arenas go with the last version."""
        self._arenas = None


class BodyArenasService:
    """Memory for bodies: see `naiad_kit.frontends.body_memory.BodyMemory`."""

    name = BodyMemory.name

    def __init__(self) -> None:
        self._arenas: WeakValueDictionary[str, BodyArenas] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._loop: AbstractEventLoop | None = None

    def part_of(self, config: ModelConfig) -> BodyPart:
        """See `ModelService`."""
        return BodyPart(config.name, self._arenas, self._lock, lambda: BodyArenas(self._loop))

    def reserve(self, model: str, size: int) -> memoryview | None:
        """See `BodyMemory`."""
        arenas = self._arenas.get(model) if size >= SMALLEST_BODY else None
        return None if arenas is None else arenas.reserve(size)

    async def start(self, server: ServerApi) -> None:
        """See `Service`."""
        self._loop = get_running_loop()

    async def stop(self, seconds: float) -> None:
        """See `Service`."""

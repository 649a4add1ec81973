"""Memory that clients share with the server, so that tensors need not travel through a connection.

A client registers a region under a name, and names it in its requests in place of a tensor's bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, overload

import numpy as np

from naiad._kernel.shared_memory.cuda import load_cuda
from naiad._kernel.shared_memory.devices import Gpus, open_device_memory
from naiad._kernel.shared_memory.mapping import Loan
from naiad._kernel.shared_memory.segments import OpenSegments, open_segment
from naiad.buffers import Buffer
from naiad.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)

Kind = Literal["system", "cuda"]
"""Where the memory of a region is: in the host, or on a GPU."""

MOST_REGIONS = 1024
"""So many regions may be registered at a time unless an option says otherwise."""

_TOLD = {"system": "system", "cuda": "CUDA"}


@dataclass(frozen=True, slots=True)
class SystemRegion:
    """A registered part of a POSIX shared memory segment: `byte_size` bytes from `offset` on of the segment `key`."""

    name: str
    key: str
    offset: int
    byte_size: int


@dataclass(frozen=True, slots=True)
class CudaRegion:
    """A registered allocation on the GPU `device_id`."""

    name: str
    device_id: int
    byte_size: int


class Region(Protocol):
    """A region that a request holds; it stays usable for it, also when it is unregistered meanwhile.

    Its memory belongs to the client, which may change, shorten or remove it at any time: that is an error at worst.
    """

    name: str

    def check(self, offset: int, byte_size: int) -> None:
        """Raise InvalidArgumentError unless these bytes lie within the region."""
        ...

    def read(self, offset: int, byte_size: int) -> np.ndarray:
        """A private copy of these bytes: uint8, one dimension.

        Raises InvalidArgumentError when they do not lie within the region, or the client has taken them away.
        """
        ...

    def lend(self, offset: int, byte_size: int) -> Loan | None:
        """These bytes, which lie within the region, where they are, for a model that is about to execute.

        None where they have to be read.
        """
        ...

    def shrunk(self) -> InvalidArgumentError:
        """What to say when lent bytes were taken away."""
        ...

    def write(self, offset: int, byte_size: int, content: Sequence[Buffer], output: str) -> None:
        """Write the buffers, one after the other, to the `byte_size` bytes from `offset` on.

        Raises InvalidArgumentError, with the name of the `output`, when they do not fit, or the client has taken the
        memory away.
        """
        ...


class SharedMemory:
    """The regions that clients have registered with one server; used on the event loop's thread.

    Unless `allowed`, clients may register and unregister nothing, and never more than `most_regions` at a time. With
    `lends` models read large inputs in system memory where they are, in place of copies: a client can change them while
    a model executes. `gpus` loads CUDA when it is first needed, and raises InvalidArgumentError where there is none.
    """

    def __init__(
        self,
        allowed: bool,
        gpus: Callable[[], Gpus] = load_cuda,
        *,
        lends: bool = False,
        most_regions: int = MOST_REGIONS,
    ) -> None:
        self._allowed = allowed
        self._lends = lends
        self._most_regions = most_regions
        self._opened = OpenSegments()
        self._load_gpus = gpus
        self._gpus: Gpus | None = None
        self._regions: dict[str, tuple[SystemRegion | CudaRegion, Region]] = {}

    def register_system(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Make a part of the POSIX shared memory segment `key` (`/name`) known as `name`.

        Raises UnsupportedError unless clients may, AlreadyExistsError for a name that is taken, UnavailableError when
        there are too many regions or open files, NotFoundError without such a segment, InvalidArgumentError for a key
        or size that is invalid.
        """
        self._check_new(name)
        opened = open_segment(name, key, offset, byte_size, self._opened, lends=self._lends)
        self._regions[name] = (SystemRegion(name, key, offset, byte_size), opened)

    def register_cuda(self, name: str, raw_handle: bytes, device_id: int, byte_size: int) -> None:
        """Make the CUDA allocation that an IPC handle of 64 bytes stands for known as `name`.

        Raises UnsupportedError unless clients may, AlreadyExistsError for a name that is taken, UnavailableError when
        there are too many regions, InvalidArgumentError without GPUs and for a handle, GPU or size that is invalid.
        """
        self._check_new(name)
        if self._gpus is None:
            try:
                self._gpus = self._load_gpus()
            except InvalidArgumentError as error:
                raise InvalidArgumentError(
                    f"failed to register CUDA shared memory region: '{name}', GPUs not supported: {error}"
                ) from error
        opened = open_device_memory(name, self._gpus, raw_handle, device_id, byte_size)
        self._regions[name] = (CudaRegion(name, device_id, byte_size), opened)

    def unregister(self, kind: Kind, name: str = "") -> None:
        """Forget the region of that kind and name, or all of that kind; one that is not there is fine.

        The name is free at once; requests that hold the region go on with it. Raises UnsupportedError unless clients
        may.
        """
        self._check_allowed()
        described = _DESCRIPTIONS[kind]
        for each in [name] if name else list(self._regions):
            if each in self._regions and isinstance(self._regions[each][0], described):
                del self._regions[each]

    @overload
    def status(self, kind: Literal["system"], name: str = "") -> list[SystemRegion]: ...
    @overload
    def status(self, kind: Literal["cuda"], name: str = "") -> list[CudaRegion]: ...
    def status(self, kind: Kind, name: str = "") -> list[Any]:
        """The region of that kind and name, or all of that kind. Raises NotFoundError."""
        described = _DESCRIPTIONS[kind]
        if not name:
            return [each for each, _ in self._regions.values() if isinstance(each, described)]
        if name not in self._regions:
            raise NotFoundError(f"Unable to find {kind} shared memory region: '{name}'")
        found = self._regions[name][0]
        if not isinstance(found, described):
            other = "cuda" if kind == "system" else "system"
            raise NotFoundError(
                f"The region named '{name}' is registered as {_TOLD[other]} shared memory, not {_TOLD[kind]} shared "
                "memory"
            )
        return [found]

    def region(self, name: str) -> Region:
        """The region of that name, of either kind. Raises NotFoundError."""
        try:
            return self._regions[name][1]
        except KeyError:
            raise NotFoundError(
                f"Unable to find shared memory region: '{name}'; register it before it is used"
            ) from None

    def close(self) -> None:
        """Forget all regions: the server ends."""
        self._regions.clear()

    def _check_new(self, name: str) -> None:
        self._check_allowed()
        if not name:
            raise InvalidArgumentError("a shared memory region needs a name")
        if name in self._regions:
            raise AlreadyExistsError(
                f"shared memory region '{name}' already in manager; unregister it first, or take another name"
            )
        if len(self._regions) >= self._most_regions:
            raise UnavailableError(
                f"shared memory region '{name}' cannot be registered: there are {len(self._regions)} regions, and "
                f"--max-shared-memory-regions is {self._most_regions}; unregister regions that are not used"
            )

    def _check_allowed(self) -> None:
        if not self._allowed:
            raise UnsupportedError(
                "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
            )


_DESCRIPTIONS: dict[Kind, type[SystemRegion | CudaRegion]] = {"system": SystemRegion, "cuda": CudaRegion}

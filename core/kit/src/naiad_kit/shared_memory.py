"""Shared memory service: tensors in memory that clients on the same machine share with the server.

A client registers a region under a name, and names it in its requests in place of a tensor's bytes. The distribution
naiad-shared-memory brings the service; a frontend takes it when it starts, with `shared_memory_of(server)`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, overload, runtime_checkable

import numpy as np

from naiad.errors import UnsupportedError
from naiad.extend import Service
from naiad.server import ServerApi
from naiad.types import RequestIO
from naiad_kit.buffers import Buffer
from naiad_tensors.tensors import Tensor

Kind = Literal["system", "cuda"]
"""Where the memory of a region is: in the host, or on a GPU."""


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


class SharedInput(NamedTuple):
    """An input whose `byte_size` bytes come from `offset` on in the shared memory region that is then called `region`.

    They are as many as its `elements` take, whose datatype on the wire is `datatype` and in numpy `dtype`; those of
    BYTES say themselves how many they are. It can be remembered from one request to the next.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    elements: int
    region: str
    offset: int
    byte_size: int


class OutputTarget(Protocol):
    """Where an output goes: some bytes of a region."""

    def holds(self, tensor: Tensor) -> bool:
        """Whether this very tensor was stored there already."""

    def store(self, tensor: Tensor, content: Buffer) -> None:
        """Write the bytes of that tensor. Raises InvalidArgumentError when they do not fit, or the memory is gone."""


@runtime_checkable
class SharedMemoryApi(Service, Protocol):
    """The service that keeps the regions which clients have registered. For the event loop's thread."""

    name: str = "shared-memory"

    def register_system(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Make a part of the POSIX shared memory segment `key` (`/name`) known as `name`.

        Raises UnsupportedError unless clients may, AlreadyExistsError for a name that is taken, UnavailableError when
        there are too many regions or open files, NotFoundError without such a segment, InvalidArgumentError for a key
        or size that is invalid.
        """

    def register_cuda(self, name: str, raw_handle: bytes, device_id: int, byte_size: int) -> None:
        """Make the CUDA allocation that an IPC handle of 64 bytes stands for known as `name`.

        Raises UnsupportedError unless clients may, AlreadyExistsError for a name that is taken, UnavailableError when
        there are too many regions, InvalidArgumentError without GPUs and for a handle, GPU or size that is invalid.
        """

    def unregister(self, kind: Kind, name: str = "") -> None:
        """Forget the region of that kind and name, or all of that kind; one that is not there is fine.

        The name is free at once; requests that hold the region go on with it. Raises UnsupportedError unless clients
        may.
        """

    @overload
    def status(self, kind: Literal["system"], name: str = "") -> list[SystemRegion]: ...
    @overload
    def status(self, kind: Literal["cuda"], name: str = "") -> list[CudaRegion]: ...
    def status(self, kind: Kind, name: str = "") -> list[SystemRegion] | list[CudaRegion]:
        """The region of that kind and name, or all of that kind. Raises NotFoundError."""

    def tensor(self, described: SharedInput, model: str) -> Tensor:
        """The tensor with what its region holds now: a copy of its bytes, or a DeferredPayload for a worker.

        The latter is for what is large or on a GPU. Raises NotFoundError without the region, InvalidArgumentError
        when the bytes do not lie within it, and, naming `model`, when they are no such tensor; of a DeferredPayload
        `fetch` raises that.
        """

    def output(self, region: str, offset: int, byte_size: int) -> OutputTarget:
        """The `byte_size` bytes from `offset` on of that region, to store an output in.

        Raises NotFoundError without the region, and InvalidArgumentError when they do not lie within it.
        """

    def request_io(self, inputs: Mapping[str, Tensor], outputs: Mapping[str, OutputTarget | None]) -> RequestIO | None:
        """What the worker has to fetch and store for a request with these inputs, None where that is not worth it.

        `outputs` are the targets of its outputs, None for one that goes into the response.
        """


def shared_memory_of(server: ServerApi) -> Callable[[], SharedMemoryApi]:
    """A function that returns the service, or raises UnsupportedError, with what to install, where there is none.

    For a frontend, which calls it for each request that is about shared memory, and for no other.
    """
    try:
        service = server.service(SharedMemoryApi)
    except UnsupportedError as error:
        reason = str(error)

        def refuse() -> SharedMemoryApi:
            raise UnsupportedError(reason)

        return refuse
    return lambda: service

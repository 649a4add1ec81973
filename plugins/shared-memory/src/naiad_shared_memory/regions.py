"""Registry of the regions that clients have registered with one server: the service behind `SharedMemoryApi`."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from naiad.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from naiad.types import RequestIO
from naiad_kit.shared_memory import CudaRegion, Kind, OutputTarget, SharedInput, SharedMemoryApi, SystemRegion
from naiad_shared_memory.cuda_driver import load_cuda
from naiad_shared_memory.device_memory import Gpus, open_device_memory
from naiad_shared_memory.guard import GUARD
from naiad_shared_memory.options import MOST_REGIONS
from naiad_shared_memory.region import Region
from naiad_shared_memory.request_io import SharedOutput, request_io, tensor_over
from naiad_shared_memory.segments import OpenSegments, open_segment
from naiad_tensors.tensors import Tensor

if TYPE_CHECKING:
    from naiad.options import Settings
    from naiad.server import ServerApi

_logger = logging.getLogger("naiad")

_KINDS = {"system": "system", "cuda": "CUDA"}


class SharedMemory(SharedMemoryApi):
    """The regions that clients have registered with one server; used on the event loop's thread.

    Unless `allowed`, clients may register and unregister nothing, and never more than `most_regions` at a time. With
    `lends` models read large inputs in system memory where they are, in place of copies: a client can change them while
    a model executes. `gpus` loads CUDA when it is first needed, and raises InvalidArgumentError where there is none.
    """

    extensions = ("system_shared_memory", "cuda_shared_memory")

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

    @classmethod
    def of(cls, settings: "Settings") -> "SharedMemory":
        """The regions of a server with these options."""
        return cls(
            settings["allow-client-shm"],
            lends=settings["shared-memory-lending"],
            most_regions=settings["max-shared-memory-regions"],
        )

    async def start(self, server: "ServerApi") -> None:
        """Nothing is opened before a client registers a region; says so where nothing can be lent."""
        if self._lends and GUARD is None:
            _logger.warning(
                "--shared-memory-lending lends nothing: naiad-shared-memory was installed without a C compiler, "
                "or Linux does not show /proc/self/pagemap"
            )

    async def stop(self, seconds: float) -> None:
        """Forget all regions: the server ends."""
        self._regions.clear()

    def register_system(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """As `SharedMemoryApi.register_system`."""
        self._check_new(name)
        opened = open_segment(name, key, offset, byte_size, self._opened, lends=self._lends)
        self._regions[name] = (SystemRegion(name, key, offset, byte_size), opened)

    def register_cuda(self, name: str, raw_handle: bytes, device_id: int, byte_size: int) -> None:
        """As `SharedMemoryApi.register_cuda`."""
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
        """As `SharedMemoryApi.unregister`."""
        self._check_allowed()
        description = _DESCRIPTIONS[kind]
        for each in [name] if name else list(self._regions):
            if each in self._regions and isinstance(self._regions[each][0], description):
                del self._regions[each]

    @overload
    def status(self, kind: Literal["system"], name: str = "") -> list[SystemRegion]: ...
    @overload
    def status(self, kind: Literal["cuda"], name: str = "") -> list[CudaRegion]: ...
    def status(self, kind: Kind, name: str = "") -> list[Any]:
        """As `SharedMemoryApi.status`."""
        description = _DESCRIPTIONS[kind]
        if not name:
            return [each for each, _ in self._regions.values() if isinstance(each, description)]
        if name not in self._regions:
            raise NotFoundError(f"Unable to find {kind} shared memory region: '{name}'")
        registered = self._regions[name][0]
        if not isinstance(registered, description):
            other = "cuda" if kind == "system" else "system"
            raise NotFoundError(
                f"The region named '{name}' is registered as {_KINDS[other]} shared memory, not {_KINDS[kind]} shared "
                "memory"
            )
        return [registered]

    def region(self, name: str) -> Region:
        """The region of that name, of either kind. Raises NotFoundError."""
        try:
            return self._regions[name][1]
        except KeyError:
            raise NotFoundError(
                f"Unable to find shared memory region: '{name}'; register it before it is used"
            ) from None

    def tensor(self, described: SharedInput, model: str) -> Tensor:
        """As `SharedMemoryApi.tensor`."""
        return tensor_over(self.region(described.region), described, model)

    def output(self, region: str, offset: int, byte_size: int) -> SharedOutput:
        """As `SharedMemoryApi.output`."""
        return SharedOutput(self.region(region), offset, byte_size)

    def request_io(self, inputs: Mapping[str, Tensor], outputs: Mapping[str, OutputTarget | None]) -> RequestIO | None:
        """As `SharedMemoryApi.request_io`."""
        return request_io(inputs, outputs)

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

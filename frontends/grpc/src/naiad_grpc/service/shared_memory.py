"""RPCs of the shared memory extensions: regions of host memory and of GPUs that clients register."""

from typing import TYPE_CHECKING, Any

from naiad_grpc.messages import message_class
from naiad_grpc.service.operations import Operation, operation
from naiad_kit.shared_memory import shared_memory_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_API = "shared-memory"


class SharedMemoryRpcs:
    """Status, registration and its end, for both kinds of memory. Without the service all are unimplemented."""

    def __init__(self, server: "ServerApi") -> None:
        self._shared_memory = shared_memory_of(server)

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        return [
            operation("SystemSharedMemoryStatus", _API, self.system_status),
            operation("SystemSharedMemoryRegister", _API, self.register_system),
            operation("SystemSharedMemoryUnregister", _API, self.unregister_system),
            operation("CudaSharedMemoryStatus", _API, self.cuda_status),
            operation("CudaSharedMemoryRegister", _API, self.register_cuda),
            operation("CudaSharedMemoryUnregister", _API, self.unregister_cuda),
        ]

    async def system_status(self, request: Any) -> Any:
        """The system region of that name, or all of them. Raises NotFoundError."""
        response = message_class("SystemSharedMemoryStatusResponse")()
        for each in self._shared_memory().status("system", request.name):
            region = response.regions[each.name]
            region.name, region.key, region.offset, region.byte_size = each.name, each.key, each.offset, each.byte_size
        return response

    async def register_system(self, request: Any) -> Any:
        """Raises what `SharedMemoryApi.register_system` raises."""
        self._shared_memory().register_system(request.name, request.key, request.offset, request.byte_size)
        return message_class("SystemSharedMemoryRegisterResponse")()

    async def unregister_system(self, request: Any) -> Any:
        """Raises UnsupportedError unless clients may."""
        self._shared_memory().unregister("system", request.name)
        return message_class("SystemSharedMemoryUnregisterResponse")()

    async def cuda_status(self, request: Any) -> Any:
        """The CUDA region of that name, or all of them. Raises NotFoundError."""
        response = message_class("CudaSharedMemoryStatusResponse")()
        for each in self._shared_memory().status("cuda", request.name):
            region = response.regions[each.name]
            region.name, region.device_id, region.byte_size = each.name, each.device_id, each.byte_size
        return response

    async def register_cuda(self, request: Any) -> Any:
        """Raises what `SharedMemoryApi.register_cuda` raises."""
        regions = self._shared_memory()
        regions.register_cuda(request.name, request.raw_handle, request.device_id, request.byte_size)
        return message_class("CudaSharedMemoryRegisterResponse")()

    async def unregister_cuda(self, request: Any) -> Any:
        """Raises UnsupportedError unless clients may."""
        self._shared_memory().unregister("cuda", request.name)
        return message_class("CudaSharedMemoryUnregisterResponse")()

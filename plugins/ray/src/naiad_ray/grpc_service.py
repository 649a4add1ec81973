"""The inference service for the gRPC proxies of Ray Serve: its RPCs on raw bytes, and a deployment's methods for them.

A proxy imports `add_service` by its name, and calls the method of the ingress deployment that is named as the RPC.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import grpc

from naiad_kit.frontends.embedding import StatusError
from naiad_ray.raw import GrpcRequest, RawAnswer, Serialized

SERVICE = "inference.GRPCInferenceService"
HEALTH = "grpc.health.v1.Health"
STREAM = f"/{SERVICE}/ModelStreamInfer"
_UNARY = (
    "ServerLive",
    "ServerReady",
    "ModelReady",
    "ServerMetadata",
    "ModelMetadata",
    "ModelInfer",
    "ModelConfig",
    "ModelStatistics",
    "RepositoryIndex",
    "RepositoryModelLoad",
    "RepositoryModelUnload",
    "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister",
    "SystemSharedMemoryUnregister",
    "CudaSharedMemoryStatus",
    "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister",
    "TraceSetting",
    "LogSettings",
)
_CODES = {code.value[0]: code for code in grpc.StatusCode}


def add_service(_servicer: object, server: Any) -> None:
    """Add the RPCs to a proxy's server; Ray puts its own routing in the handlers."""
    handlers = {name: grpc.unary_unary_rpc_method_handler(_routed) for name in _UNARY}
    handlers["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(_routed)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    health = {"Check": grpc.unary_unary_rpc_method_handler(_routed)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(HEALTH, health),))


def _routed(*_: object) -> None:
    raise NotImplementedError("Ray Serve routes this call to a replica")


class GrpcMethods:
    """A method for each RPC. A deployment overrides `rpc` and `rpc_stream`, which do the work of all of them."""

    async def rpc(self, request: GrpcRequest) -> RawAnswer:
        """The answer to a call with one message."""
        raise NotImplementedError

    def rpc_stream(
        self, messages: AsyncIterator[bytes], metadata: tuple[tuple[str, str | bytes], ...]
    ) -> AsyncGenerator[bytes, None]:
        """The messages that answer those of ModelStreamInfer. Raises StatusError."""
        raise NotImplementedError

    async def _unary(self, name: str, message: bytes, context: Any) -> Serialized:
        answer = await self.rpc(GrpcRequest(f"/{SERVICE}/{name}", message, tuple(context.invocation_metadata())))
        return _settled(answer, context)

    async def ServerLive(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ServerLive", message, grpc_context)

    async def ServerReady(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ServerReady", message, grpc_context)

    async def ModelReady(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ModelReady", message, grpc_context)

    async def ServerMetadata(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ServerMetadata", message, grpc_context)

    async def ModelMetadata(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ModelMetadata", message, grpc_context)

    async def ModelInfer(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ModelInfer", message, grpc_context)

    async def ModelConfig(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ModelConfig", message, grpc_context)

    async def ModelStatistics(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("ModelStatistics", message, grpc_context)

    async def RepositoryIndex(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("RepositoryIndex", message, grpc_context)

    async def RepositoryModelLoad(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("RepositoryModelLoad", message, grpc_context)

    async def RepositoryModelUnload(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("RepositoryModelUnload", message, grpc_context)

    async def SystemSharedMemoryStatus(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("SystemSharedMemoryStatus", message, grpc_context)

    async def SystemSharedMemoryRegister(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("SystemSharedMemoryRegister", message, grpc_context)

    async def SystemSharedMemoryUnregister(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("SystemSharedMemoryUnregister", message, grpc_context)

    async def CudaSharedMemoryStatus(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("CudaSharedMemoryStatus", message, grpc_context)

    async def CudaSharedMemoryRegister(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("CudaSharedMemoryRegister", message, grpc_context)

    async def CudaSharedMemoryUnregister(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("CudaSharedMemoryUnregister", message, grpc_context)

    async def TraceSetting(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("TraceSetting", message, grpc_context)

    async def LogSettings(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802, D102
        return await self._unary("LogSettings", message, grpc_context)

    async def Check(self, message: bytes, grpc_context: Any) -> Serialized:  # noqa: N802
        """The standard health check."""
        request = GrpcRequest(f"/{HEALTH}/Check", message, tuple(grpc_context.invocation_metadata()))
        return _settled(await self.rpc(request), grpc_context)

    async def ModelStreamInfer(  # noqa: N802
        self, messages: AsyncIterator[bytes], grpc_context: Any
    ) -> AsyncGenerator[Serialized, None]:
        """A stream of requests and responses."""
        try:
            async for message in self.rpc_stream(messages, tuple(grpc_context.invocation_metadata())):
                yield Serialized(message)
        except StatusError as error:
            grpc_context.set_code(_CODES[error.code])
            grpc_context.set_details(error.message)
            raise


def _settled(answer: RawAnswer, context: Any) -> Serialized:
    """The message of an answer; an error's status goes to the context, so that Ray logs no traceback for it."""
    if answer.status:
        context.set_code(_CODES[answer.status])
        context.set_details(answer.text)
    return Serialized(answer.body)

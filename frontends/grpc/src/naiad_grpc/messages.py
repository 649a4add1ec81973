"""Protobuf messages and descriptors of the services, in a descriptor pool of our own.

The `.proto` files are in `protos`, with their compiled form in `services.binpb` (`make protos`). The client library
registers the same names in protobuf's default pool. Ours are in the pool that `naiad_config` has its messages in, so
both can be imported in one process, in either order. The published packages of the health and reflection services come
with generated code, which ties them to few releases of protobuf and to one transport.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from naiad_config import descriptors

PACKAGE = descriptors.PACKAGE
SERVICE = f"{PACKAGE}.GRPCInferenceService"
"""The full name of the service: an RPC's path is `/<SERVICE>/<name>`."""

HEALTH_PACKAGE = "grpc.health.v1"
HEALTH_SERVICE = f"{HEALTH_PACKAGE}.Health"
REFLECTION_PACKAGES = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
"""Both versions have the same messages; older clients know only the second."""

SERVICES = (SERVICE, HEALTH_SERVICE, *(f"{package}.ServerReflection" for package in REFLECTION_PACKAGES))
"""The full names of the services that are served."""

_COMPILED = Path(__file__).parent / "protos" / "services.binpb"


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC: its path, the classes of its messages, and whether both are streams."""

    name: str
    request: Any
    response: Any
    streaming: bool

    @property
    def path(self) -> str:
        """The path of the RPC on the wire."""
        return f"/{SERVICE}/{self.name}"


@functools.cache
def message_class(name: str, package: str = PACKAGE) -> Any:
    """The class of a message, by its name without the package: `ModelInferRequest.InferInputTensor`."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{package}.{name}"))


@functools.cache
def rpcs() -> tuple[Rpc, ...]:
    """Every RPC of the inference service."""
    return tuple(
        Rpc(
            method.name,
            message_factory.GetMessageClass(method.input_type),
            message_factory.GetMessageClass(method.output_type),
            method.client_streaming and method.server_streaming,
        )
        for method in service().methods
    )


def service() -> ServiceDescriptor:
    """The descriptor of the inference service."""
    return pool().FindServiceByName(SERVICE)


@functools.cache
def pool() -> DescriptorPool:
    """Our descriptor pool, with all services and everything that they refer to."""
    ours = descriptors.pool()
    compiled = _COMPILED.read_bytes()
    for file in FileDescriptorSet.FromString(compiled).file:
        ours.AddSerializedFile(file.SerializeToString())
    return ours

"""Protobuf messages and service descriptor of `inference.GRPCInferenceService`, in a descriptor pool of our own.

The client library registers the same names in protobuf's default pool. Ours are in the pool that `naiad_config` has its
messages in, so both can be imported in one process, in either order.
"""

import functools
from dataclasses import dataclass
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from naiad_config import descriptors
from naiad_grpc.notation import declare
from naiad_grpc.schema import MESSAGES, REQUESTS, RPCS, STREAMING

PACKAGE = descriptors.PACKAGE
SERVICE = f"{PACKAGE}.GRPCInferenceService"
"""The full name of the service: an RPC's path is `/<SERVICE>/<name>`."""

_FILE = "grpc_service.proto"


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
def message_class(name: str) -> Any:
    """The class of a message, by its name without the package: `ModelInferRequest.InferInputTensor`."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@functools.cache
def rpcs() -> tuple[Rpc, ...]:
    """Every RPC of the service."""
    return tuple(
        Rpc(name, message_class(REQUESTS[name]), message_class(f"{name}Response"), name in STREAMING) for name in RPCS
    )


def service() -> ServiceDescriptor:
    """The descriptor of the service, for reflection."""
    return pool().FindServiceByName(SERVICE)


@functools.cache
def pool() -> DescriptorPool:
    """Our descriptor pool, with the service and everything that it refers to."""
    ours = descriptors.pool()
    ours.AddSerializedFile(_file().SerializeToString())
    return ours


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name=_FILE, package=PACKAGE, syntax="proto3", dependency=[descriptors.FILE])
    declare(file, MESSAGES, "parameter_choice")
    service = file.service.add(name=SERVICE.rpartition(".")[2])
    for name in RPCS:
        streaming = name in STREAMING
        service.method.add(
            name=name,
            input_type=f".{PACKAGE}.{REQUESTS[name]}",
            output_type=f".{PACKAGE}.{name}Response",
            client_streaming=streaming,
            server_streaming=streaming,
        )
    return file

"""The protobuf messages and the service of `inference.GRPCInferenceService`, in a descriptor pool of our own.

The client library registers the same names in protobuf's default pool. Ours are in the pool that `naiad.config` has its
messages in, so both can be imported in one process, in either order.
"""

import functools
import re
from dataclasses import dataclass
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from naiad.config import descriptors
from naiad_grpc.schema import MESSAGES, REQUESTS, RPCS, STREAMING

PACKAGE = descriptors.PACKAGE
SERVICE = f"{PACKAGE}.GRPCInferenceService"
"""The full name of the service: an RPC's path is `/<SERVICE>/<name>`."""

_FILE = "grpc_service.proto"
_FIELD = re.compile(r"(one of )?(repeated )?(?:map<string, ([\w.]+)>|([\w.]+)) (\w+) = (\d+)")
_SCALARS = frozenset(("bool", "int32", "int64", "uint32", "uint64", "float", "double", "string", "bytes"))
_OPTIONAL, _REPEATED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC: its path, the classes of its messages, and whether both are streams."""

    name: str
    request: Any
    response: Any
    streaming: bool

    @property
    def path(self) -> str:
        """What a client calls it by."""
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
    """Our descriptor pool, which has the service and everything that it mentions."""
    ours = descriptors.pool()
    ours.AddSerializedFile(_file().SerializeToString())
    return ours


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name=_FILE, package=PACKAGE, syntax="proto3", dependency=[descriptors.FILE])
    made: dict[str, DescriptorProto] = {}
    for name, fields in MESSAGES.items():
        parent, _, own = name.rpartition(".")
        message = made[parent].nested_type.add(name=own) if parent else file.message_type.add(name=own)
        made[name] = message
        for field in fields.split("; ") if fields else ():
            _add_field(message, name, field)
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


def _add_field(message: DescriptorProto, owner: str, text: str) -> None:
    """Add the field that `text` declares to the message whose full name is `owner`."""
    found = _FIELD.fullmatch(text)
    if found is None:
        raise ValueError(f"{owner}: '{text}' declares no field")
    one_of, repeated, mapped, type_name, name, number = found.groups()
    field = message.field.add(name=name, number=int(number), label=_REPEATED if repeated or mapped else _OPTIONAL)
    if one_of:
        message.oneof_decl.add(name="parameter_choice")
    if message.oneof_decl:
        field.oneof_index = 0
    if not mapped:
        _set_type(field, type_name)
        return
    entry = message.nested_type.add(name="".join(map(str.capitalize, name.split("_"))) + "Entry")
    entry.options.map_entry = True
    _set_type(entry.field.add(name="key", number=1, label=_OPTIONAL), "string")
    _set_type(entry.field.add(name="value", number=2, label=_OPTIONAL), mapped)
    _set_type(field, f"{owner}.{entry.name}")


def _set_type(field: FieldDescriptorProto, name: str) -> None:
    if name in _SCALARS:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{name}"

"""Messages of the standard gRPC services: health checking and reflection.

They are those of gRPC's `grpc/health/v1/health.proto` and `grpc/reflection/v1/reflection.proto`, in our own pool: the
published packages come with generated code, which ties them to few releases of protobuf, and with one transport.
"""

import functools
from collections.abc import Mapping
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from naiad_grpc import messages
from naiad_grpc.notation import declare

HEALTH_PACKAGE = "grpc.health.v1"
HEALTH_SERVICE = f"{HEALTH_PACKAGE}.Health"
REFLECTION_PACKAGES = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
"""Both versions have the same messages; clients of some years ago know only the second."""

_HEALTH = {
    "HealthCheckRequest": "string service = 1",
    "HealthCheckResponse": "HealthCheckResponse.ServingStatus status = 1",
}
_STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_REFLECTION: Mapping[str, str] = {
    "ServerReflectionRequest": (
        "string host = 1; one of string file_by_filename = 3; string file_containing_symbol = 4; "
        "ExtensionRequest file_containing_extension = 5; string all_extension_numbers_of_type = 6; "
        "string list_services = 7"
    ),
    "ExtensionRequest": "string containing_type = 1; int32 extension_number = 2",
    "ServerReflectionResponse": (
        "string valid_host = 1; ServerReflectionRequest original_request = 2; "
        "one of FileDescriptorResponse file_descriptor_response = 4; "
        "ExtensionNumberResponse all_extension_numbers_response = 5; ListServiceResponse list_services_response = 6; "
        "ErrorResponse error_response = 7"
    ),
    "FileDescriptorResponse": "repeated bytes file_descriptor_proto = 1",
    "ExtensionNumberResponse": "string base_type_name = 1; repeated int32 extension_number = 2",
    "ListServiceResponse": "repeated ServiceResponse service = 1",
    "ServiceResponse": "string name = 1",
    "ErrorResponse": "int32 error_code = 1; string error_message = 2",
}


def standard_class(package: str, name: str) -> Any:
    """The class of a message of one of these packages."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{package}.{name}"))


@functools.cache
def pool() -> DescriptorPool:
    """Our descriptor pool with all services: the inference service and those of this module."""
    ours = messages.pool()
    for file in (_health(), *map(_reflection, REFLECTION_PACKAGES)):
        ours.AddSerializedFile(file.SerializeToString())
    return ours


def _health() -> FileDescriptorProto:
    file = FileDescriptorProto(name="grpc/health/v1/health.proto", package=HEALTH_PACKAGE, syntax="proto3")
    declare(file, _HEALTH, "")
    response = file.message_type[1]
    response.field[0].type = FieldDescriptorProto.TYPE_ENUM
    status = response.enum_type.add(name="ServingStatus")
    for number, name in enumerate(_STATUSES):
        status.value.add(name=name, number=number)
    _add_service(file, "Health", {"Check": (False, False), "Watch": (False, True)}, "HealthCheck")
    return file


def _reflection(package: str) -> FileDescriptorProto:
    file = FileDescriptorProto(name=f"{package.replace('.', '/')}/reflection.proto", package=package, syntax="proto3")
    declare(file, _REFLECTION, "message_request")
    file.message_type[2].oneof_decl[0].name = "message_response"
    _add_service(file, "ServerReflection", {"ServerReflectionInfo": (True, True)}, "ServerReflection")
    return file


def _add_service(file: FileDescriptorProto, name: str, rpcs: Mapping[str, tuple[bool, bool]], prefix: str) -> None:
    """Add a service whose RPCs take `<prefix>Request` and return `<prefix>Response`, each as a stream or not."""
    service = file.service.add(name=name)
    for rpc, (from_client, from_server) in rpcs.items():
        service.method.add(
            name=rpc,
            input_type=f".{file.package}.{prefix}Request",
            output_type=f".{file.package}.{prefix}Response",
            client_streaming=from_client,
            server_streaming=from_server,
        )

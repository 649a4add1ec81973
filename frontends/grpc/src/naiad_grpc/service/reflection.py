"""RPC of server reflection: describes the services and their messages to clients such as grpcurl."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from naiad_grpc.messages import REFLECTION_PACKAGES, SERVICES, message_class, pool
from naiad_grpc.service.operations import Operation, stream
from naiad_grpc.statuses import Code


class ReflectionRpcs:
    """Both versions of the reflection service."""

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        return [
            stream(
                f"/{package}.ServerReflection/ServerReflectionInfo",
                "metadata",
                message_class("ServerReflectionRequest", package),
                _Reflection(package).answers,
            )
            for package in REFLECTION_PACKAGES
        ]


class _Reflection:
    def __init__(self, package: str) -> None:
        self._response = message_class("ServerReflectionResponse", package)

    async def answers(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        async for request in requests:
            response = self._response(valid_host=request.host, original_request=request)
            try:
                self._answer(request, response)
            except KeyError:
                response.error_response.error_code = Code.NOT_FOUND
                response.error_response.error_message = "there is no such file, symbol, or extension"
            yield response

    def _answer(self, request: Any, response: Any) -> None:
        """Fill in the response. Raises KeyError for an unknown name."""
        kind = request.WhichOneof("message_request")
        if kind == "list_services":
            for name in SERVICES:
                response.list_services_response.service.add(name=name)
        elif kind == "file_by_filename":
            _add_files(response, pool().FindFileByName(request.file_by_filename))
        elif kind == "file_containing_symbol":
            _add_files(response, _file_of(request.file_containing_symbol))
        elif kind == "all_extension_numbers_of_type":  # none of our messages has any
            message = pool().FindMessageTypeByName(request.all_extension_numbers_of_type)
            response.all_extension_numbers_response.base_type_name = message.full_name
        else:
            raise KeyError(kind)


def _file_of(symbol: str) -> FileDescriptor:
    """The file that declares a symbol, `package.service.method` too, which the pool does not find. Raises KeyError."""
    descriptors = pool()
    service, _, method = symbol.rpartition(".")
    try:
        file: FileDescriptor = descriptors.FindFileContainingSymbol(symbol)
    except KeyError:
        file = descriptors.FindServiceByName(service).methods_by_name[method].containing_service.file
    return file


def _add_files(response: Any, file: FileDescriptor) -> None:
    for each in _with_dependencies(file):
        described = FileDescriptorProto()
        each.CopyToProto(described)
        response.file_descriptor_response.file_descriptor_proto.append(described.SerializeToString())


def _with_dependencies(file: FileDescriptor) -> Iterator[FileDescriptor]:
    yield file
    for each in file.dependencies:
        yield from _with_dependencies(each)

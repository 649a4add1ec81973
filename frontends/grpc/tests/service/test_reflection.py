"""gRPC reflection, and our standard messages against the published ones."""

import asyncio

import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from naiad_grpc.messages import REFLECTION_PACKAGES, message_class, pool
from naiad_grpc.service.reflection import ReflectionRpcs


def answers(package, *requests):
    (operation,) = (each for each in ReflectionRpcs().operations() if each.path.startswith(f"/{package}."))

    async def messages():
        for each in requests:
            yield message_class("ServerReflectionRequest", package)(**each).SerializeToString()

    async def reflected():
        response = message_class("ServerReflectionResponse", package)
        return [response.FromString(each) async for each in operation.answer(messages(), None)]

    return asyncio.run(reflected())


def files(response):
    results = [
        descriptor_pb2.FileDescriptorProto.FromString(each)
        for each in response.file_descriptor_response.file_descriptor_proto
    ]
    return [file.name for file in results]


@pytest.mark.parametrize("package", REFLECTION_PACKAGES)
def test_services_files_and_symbols_are_reported(package):
    services, by_name, by_symbol, extensions = answers(
        package,
        {"host": "h", "list_services": "*"},
        {"file_by_filename": "grpc/health/v1/health.proto"},
        {"file_containing_symbol": "inference.GRPCInferenceService"},
        {"all_extension_numbers_of_type": "inference.ModelConfig"},
    )

    assert [each.name for each in services.list_services_response.service] == [
        "inference.GRPCInferenceService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ]
    assert (services.valid_host, services.original_request.list_services) == ("h", "*")
    assert files(by_name) == ["grpc/health/v1/health.proto"]
    assert files(by_symbol) == ["grpc_service.proto", "model_config.proto"]
    assert extensions.all_extension_numbers_response.base_type_name == "inference.ModelConfig"


def test_the_file_of_a_method_is_that_of_its_service():
    (by_method,) = answers("grpc.reflection.v1", {"file_containing_symbol": "grpc.health.v1.Health.Check"})

    assert files(by_method) == ["grpc/health/v1/health.proto"]


@pytest.mark.parametrize(
    "request_",
    [
        {"file_containing_symbol": "grpc.health.v1.Health.Dream"},
        {"file_containing_symbol": "dream.Service.Method"},
        {"file_by_filename": "dream.proto"},
        {"file_containing_symbol": "dream.Service"},
        {"all_extension_numbers_of_type": "dream.Message"},
        {"file_containing_extension": {"containing_type": "inference.ModelConfig", "extension_number": 7}},
        {},
    ],
)
def test_what_is_not_there_is_reported_and_does_not_end_the_stream(request_):
    missing, services = answers("grpc.reflection.v1alpha", request_, {"list_services": ""})

    assert missing.error_response.error_code == 5
    assert len(services.list_services_response.service) == 4


@pytest.mark.parametrize("published", [health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR], ids=["health", "reflection"])
def test_our_standard_messages_are_those_of_the_published_packages(published):
    ours = pool().FindFileContainingSymbol(next(iter(published.services_by_name.values())).full_name)

    for name, message in published.message_types_by_name.items():
        assert fields(ours.message_types_by_name[name]) == fields(message)
    for name, service in published.services_by_name.items():
        for method in service.methods:
            same = ours.services_by_name[name].methods_by_name[method.name]
            assert (same.input_type.full_name, same.output_type.full_name) == (
                method.input_type.full_name,
                method.output_type.full_name,
            )


def fields(message):
    def described(field):
        oneof = field.containing_oneof.name if field.containing_oneof else ""
        kind = (
            (field.enum_type or field.message_type).full_name if field.enum_type or field.message_type else field.type
        )
        values = {each.name: each.number for each in field.enum_type.values} if field.enum_type else {}
        return field.number, field.is_repeated, kind, oneof, values

    return {field.name: described(field) for field in message.fields}

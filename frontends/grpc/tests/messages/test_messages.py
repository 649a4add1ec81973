"""Our messages and service against those of the published client."""

import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2

from naiad_config import ModelConfig
from naiad_config.descriptors import to_message
from naiad_grpc.messages import SERVICE, message_class, pool, rpcs, service


@pytest.fixture(scope="module")
def published():
    from tritonclient.grpc import service_pb2

    file = descriptor_pb2.FileDescriptorProto()
    service_pb2.DESCRIPTOR.CopyToProto(file)
    return file


@pytest.fixture(scope="module")
def ours():
    file = descriptor_pb2.FileDescriptorProto()
    service().file.CopyToProto(file)
    return file


def declared(scope, prefix=""):
    """Every message and field below a file or message, as rows to compare."""
    messages = scope.nested_type if isinstance(scope, descriptor_pb2.DescriptorProto) else scope.message_type
    rows = set()
    for message in messages:
        name = f"{prefix}{message.name}"
        oneofs = [each.name for each in message.oneof_decl]
        rows.add((name, message.options.map_entry))
        for field in message.field:
            oneof = oneofs[field.oneof_index] if field.HasField("oneof_index") else ""
            rows.add((name, field.name, field.number, field.label, field.type, field.type_name, oneof))
        rows |= declared(message, f"{name}.")
    return rows


def test_every_message_is_that_of_the_client(published, ours):
    assert len(ours.message_type) == 48
    assert declared(ours) == declared(published)


def test_every_rpc_is_that_of_the_client(published, ours):
    def rows(file):
        return {(m.name, m.input_type, m.output_type, m.client_streaming, m.server_streaming) for m in file.method}

    assert rows(ours.service[0]) == rows(published.service[0])
    assert service().full_name == SERVICE == "inference.GRPCInferenceService"


def test_an_rpc_knows_its_path_and_messages():
    results = {rpc.name: rpc for rpc in rpcs()}

    stream = results["ModelStreamInfer"]

    assert len(results) == 20
    assert stream.path == "/inference.GRPCInferenceService/ModelStreamInfer"
    assert stream.request is message_class("ModelInferRequest")
    assert stream.response is message_class("ModelStreamInferResponse")
    assert [rpc.name for rpc in results.values() if rpc.streaming] == ["ModelStreamInfer"]


def test_a_configuration_fits_into_its_response():
    config = to_message(ModelConfig(name="m", max_batch_size=8))

    response = message_class("ModelConfigResponse")(config=config)

    assert response.config.max_batch_size == 8


def test_the_pool_is_not_the_default_one():
    from google.protobuf import descriptor_pool

    assert pool() is not descriptor_pool.Default()


@pytest.mark.parametrize("order", ["naiad_grpc.messages tritonclient.grpc", "tritonclient.grpc naiad_grpc.messages"])
def test_the_client_is_importable_in_the_same_process_in_either_order(order):
    code = f"import {order.replace(' ', ', ')}; naiad_grpc.messages.rpcs()"

    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")

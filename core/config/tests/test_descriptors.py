"""Our descriptors against those of the published client."""

import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from naiad_config import ModelInput, ModelOutput, ModelQueuePolicy
from naiad_config.descriptors import file_descriptor, from_message, message_class, to_message
from naiad_config.text import parse_text


@pytest.fixture(scope="module")
def published():
    from tritonclient.grpc import model_config_pb2

    return model_config_pb2


def described(scope, prefix=""):
    """Every message, field, oneof and enum value below a file or message, as rows to compare."""
    messages: list[DescriptorProto] = scope.nested_type if isinstance(scope, DescriptorProto) else scope.message_type
    enums: list[EnumDescriptorProto] = scope.enum_type
    rows = {(f"{prefix}{enum.name}", value.name, value.number) for enum in enums for value in enum.value}
    for message in messages:
        name = f"{prefix}{message.name}"
        rows.add((name, "message", message.options.map_entry))
        for field in message.field:
            oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
            rows.add((name, field.name, field.number, field.type, field.label, field.type_name, oneof))
        rows |= described(message, f"{name}.")
    return rows


def test_every_message_field_and_enum_is_the_published_one(published):
    real = descriptor_pb2.FileDescriptorProto()
    published.DESCRIPTOR.CopyToProto(real)
    descriptor = file_descriptor()

    assert described(descriptor) == described(real)
    assert (descriptor.name, descriptor.package, descriptor.syntax) == (real.name, real.package, real.syntax)
    assert len(described(descriptor)) > 250


def test_the_fields_are_declared_in_the_published_order(published):
    for name in ("ModelConfig", "ModelInput", "ModelInstanceGroup", "ModelSequenceBatching"):
        descriptor = next(message for message in file_descriptor().message_type if message.name == name)
        real = published.DESCRIPTOR.message_types_by_name[name]

        assert [field.name for field in descriptor.field] == [field.name for field in real.fields]


def test_a_published_client_reads_what_we_send_and_we_read_what_it_sends(published):
    config = parse_text(
        """
        name: "m" input { name: "x" data_type: TYPE_FP32 dims: [ 1, -1 ] }
        dynamic_batching { priority_queue_policy { key: 3 value { max_queue_size: 7 } } }
        sequence_batching { } parameters { key: "k" value { string_value: "v" } }
        """.replace("sequence_batching { }", "")
    )

    received = published.ModelConfig.FromString(to_message(config).SerializeToString())

    assert received.input[0].dims == [1, -1]
    assert received.dynamic_batching.priority_queue_policy[3].max_queue_size == 7
    assert from_message(received) == config


def test_a_part_of_a_configuration_is_a_message_too():
    model_input = ModelInput(name="x", dims=(2,))

    assert from_message(to_message(model_input), ModelInput) == model_input
    assert message_class(ModelOutput).DESCRIPTOR.full_name == "inference.ModelOutput"
    assert message_class(ModelQueuePolicy) is message_class(ModelQueuePolicy)


@pytest.mark.parametrize("ours_first", [True, False])
def test_client_and_server_messages_live_in_one_process_in_either_order(ours_first):
    ours = "from naiad_config.descriptors import message_class; from naiad_config import ModelConfig"
    descriptor = "ours = message_class(ModelConfig)(name='m')"
    client = "from tritonclient.grpc import model_config_pb2; theirs = model_config_pb2.ModelConfig(name='m')"
    lines = [ours, descriptor, client] if ours_first else [client, ours, descriptor]
    check = "assert type(ours) is not type(theirs) and ours.SerializeToString() == theirs.SerializeToString()"

    done = subprocess.run([sys.executable, "-c", "\n".join([*lines, check])], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_reading_configurations_does_not_import_protobuf():
    imports = "import naiad_config.text, naiad_config.json, naiad_config.validation, naiad_config.normalisation, sys"

    done = subprocess.run(
        [sys.executable, "-c", f"{imports}\nassert not any(name.startswith('google') for name in sys.modules)"],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")

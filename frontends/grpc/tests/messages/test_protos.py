"""The compiled descriptors that are shipped, against the `.proto` files and the dataclasses of configurations."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

import naiad_grpc
from naiad_config import descriptors

PROTOS = Path(naiad_grpc.__file__).parent / "protos"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Every `.proto` file that is shipped, by name, as protoc compiles it now."""
    into = tmp_path_factory.mktemp("compiled") / "all.binpb"
    names = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTOS}", f"--descriptor_set_out={into}"]
    subprocess.run([*command, *names], check=True)
    return {file.name: file for file in FileDescriptorSet.FromString(into.read_bytes()).file}


def rows(scope: FileDescriptorProto | DescriptorProto, prefix=""):
    """Every field and enum below a file or message, without the order of declaration and the names in JSON."""
    is_file = isinstance(scope, FileDescriptorProto)
    for enum in scope.enum_type:
        yield f"{prefix}{enum.name}", *((value.name, value.number) for value in enum.value)
    for message in scope.message_type if is_file else scope.nested_type:
        name = f"{prefix}{message.name}"
        yield name, message.options.map_entry
        for field in message.field:
            oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
            yield name, field.name, field.number, field.label, field.type, field.type_name, oneof
        yield from rows(message, f"{name}.")


def test_the_compiled_descriptors_are_those_of_the_proto_files(compiled):
    shipped = FileDescriptorSet.FromString((PROTOS / "services.binpb").read_bytes())
    expected = {name: file for name, file in compiled.items() if name != descriptors.FILE}

    assert {file.name: file for file in shipped.file} == expected, "run `make protos`"


def test_the_configuration_in_the_proto_file_is_that_of_the_dataclasses(compiled):
    assert set(rows(compiled[descriptors.FILE])) == set(rows(descriptors.file_descriptor()))

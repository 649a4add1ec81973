"""Protobuf messages of Caffe2 nets, in a descriptor pool of our own: the fields of `caffe2.proto` that are read.

Fields that are not declared here (devices, engines' settings, gradients) are skipped by protobuf itself. Files hold
floats one by one; here they are declared as packed, which protobuf reads as well, so that they come out in one piece.
"""

import functools
from typing import Any

import numpy as np
from google.protobuf import descriptor_pool, message_factory, text_format
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError

_PACKAGE = "caffe2"
_MESSAGES = {
    "Argument": (
        ("name", 1, "string", False),
        ("f", 2, "float", False),
        ("i", 3, "int64", False),
        ("s", 4, "bytes", False),
        ("floats", 5, "float", True),
        ("ints", 6, "int64", True),
        ("strings", 7, "bytes", True),
    ),
    "OperatorDef": (
        ("input", 1, "string", True),
        ("output", 2, "string", True),
        ("name", 3, "string", False),
        ("type", 4, "string", False),
        ("arg", 5, "Argument", True),
        ("engine", 7, "string", False),
    ),
    "NetDef": (
        ("name", 1, "string", False),
        ("op", 2, "OperatorDef", True),
        ("arg", 6, "Argument", True),
        ("external_input", 7, "string", True),
        ("external_output", 8, "string", True),
    ),
}
"""Name, number, type and whether it is repeated, of every field of `caffe2.proto` that says what a net computes."""


def message_class(name: str) -> Any:
    """The class of `Argument`, `OperatorDef` or `NetDef`."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def floats_of(argument: Any) -> np.ndarray:
    """The `floats` of an `Argument`, FP32[n].

    They are taken from the serialised message, which ends with them: 30 million took 1.7 s one by one, and 0.1 s so.
    """
    argument.DiscardUnknownFields()
    if argument.ints or argument.strings:
        return np.fromiter(argument.floats, np.float32, len(argument.floats))
    serialised = argument.SerializeToString()
    return np.frombuffer(serialised, "<f4", len(argument.floats), len(serialised) - 4 * len(argument.floats))


def parse_net(content: bytes) -> Any:
    """The `NetDef` in a file, which is binary, or protobuf's text. Raises ValueError when it is neither."""
    net = message_class("NetDef")()
    try:
        net.ParseFromString(content)
    except DecodeError:  # no text is a message in binary: no name of a field begins as one does
        return _from_text(content)
    return net


def _from_text(content: bytes) -> Any:
    net = message_class("NetDef")()
    try:
        text_format.Parse(content.decode(), net, allow_unknown_field=True)
    except (UnicodeDecodeError, text_format.ParseError):
        raise ValueError("it is not a NetDef, neither in binary nor as text") from None
    return net


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = FileDescriptorProto(name="caffe2.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind, repeated in fields:
            label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            field = message.field.add(name=field_name, number=number, label=label)
            field.options.packed = field_name == "floats"
            if kind in _MESSAGES:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
            else:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool

"""The configuration messages as protobuf messages, in a descriptor pool of their own.

The client library registers the same names in protobuf's default pool; a pool of our own keeps both importable in one
process, in either order. protobuf is imported here and nowhere else in `naiad_config`.
"""

import functools
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message

from naiad_config.fields import FieldSpec, classes_of, proto_name, specs
from naiad_config.model import ModelConfig
from naiad_config.scalars import float32

PACKAGE = "inference"
FILE = "model_config.proto"

_OPTIONAL, _REPEATED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED


def message_class(cls: type) -> type[Message]:
    """The protobuf class of a configuration message, in our pool."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{PACKAGE}.{proto_name(cls)}"))


def to_message(config: Any) -> Message:
    """The protobuf message of a configuration or of any part of it."""
    message = message_class(type(config))()
    _fill(message, config)
    return message


def from_message(message: Message, cls: type = ModelConfig) -> Any:
    """The configuration (or the part that `cls` is) in a protobuf message of ours or of a client's classes."""
    values: dict[str, Any] = {}
    for spec in specs(cls).values():
        if spec.cardinality != "optional":
            values[spec.attribute] = _many(spec, getattr(message, spec.name))
        elif not (spec.is_message or spec.oneof) or message.HasField(spec.name):
            values[spec.attribute] = _from_value(spec, getattr(message, spec.name))
    return cls(**values)


@functools.cache
def pool() -> descriptor_pool.DescriptorPool:
    """Our descriptor pool, with `model_config.proto` in it; other files of the protocol may be added to it."""
    new_pool = descriptor_pool.DescriptorPool()
    new_pool.Add(file_descriptor())
    return new_pool


def file_descriptor() -> FileDescriptorProto:
    """`model_config.proto`, made from the dataclasses."""
    file = descriptor_pb2.FileDescriptorProto(name=FILE, package=PACKAGE, syntax="proto3")
    for cls in sorted(classes_of(ModelConfig), key=proto_name):
        _declare(file, cls)
    return file


def _declare(file: FileDescriptorProto, cls: type) -> None:
    """Add the class to the file, inside the message that its name says it is nested in."""
    *outer, name = proto_name(cls).split(".")
    scope: FileDescriptorProto | DescriptorProto = file
    for part in outer:
        scope = _message_in(scope, part)
    if not issubclass(cls, IntEnum):
        _fields(_message_in(scope, name), cls)
        return
    enum = scope.enum_type.add(name=name)
    for member in cls:
        enum.value.add(name=member.name, number=member.value)


def _message_in(scope: FileDescriptorProto | DescriptorProto, name: str) -> DescriptorProto:
    messages = scope.message_type if isinstance(scope, FileDescriptorProto) else scope.nested_type
    for message in messages:
        if message.name == name:
            return message
    return messages.add(name=name)


def _fields(message: DescriptorProto, cls: type) -> None:
    oneofs: dict[str, int] = {}
    for spec in specs(cls).values():
        field = message.field.add(name=spec.name, number=spec.number)
        field.label = _OPTIONAL if spec.cardinality == "optional" else _REPEATED
        if spec.cardinality == "map":
            entry = _entry(message, spec)
            field.type = FieldDescriptorProto.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{proto_name(cls)}.{entry.name}"
        else:
            _type(field, spec)
        if spec.oneof:
            if spec.oneof not in oneofs:
                oneofs[spec.oneof] = len(oneofs)
                message.oneof_decl.add(name=spec.oneof)
            field.oneof_index = oneofs[spec.oneof]


def _entry(message: DescriptorProto, spec: FieldSpec) -> DescriptorProto:
    """The message of a map's entries, named as the protobuf compiler names it."""
    entry = message.nested_type.add(name="".join(part.capitalize() for part in spec.name.split("_")) + "Entry")
    entry.options.map_entry = True
    for part in (spec.map_key, spec.map_value):
        _type(entry.field.add(name=part.name, number=part.number, label=_OPTIONAL), part)
    return entry


def _type(field: FieldDescriptorProto, spec: FieldSpec) -> None:
    if spec.scalar:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{spec.scalar.upper()}")
        return
    field.type = FieldDescriptorProto.TYPE_ENUM if spec.is_enum else FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{proto_name(spec.type)}"


def _fill(message: Any, config: Any) -> None:
    for spec, value in _set_fields(config):
        target = getattr(message, spec.name)
        if spec.cardinality == "map":
            for key, content in value.items():
                if spec.is_message:
                    _fill(target[key], content)
                    target[key].SetInParent()
                else:
                    target[key] = content
        elif spec.cardinality == "repeated":
            if spec.is_message:
                for content in value:
                    _fill(target.add(), content)
            else:
                target.extend(value)
        elif spec.is_message:
            target.SetInParent()
            _fill(target, value)
        else:
            setattr(message, spec.name, value)


def _set_fields(config: Any) -> Iterator[tuple[FieldSpec, Any]]:
    for spec in specs(type(config)).values():
        value = getattr(config, spec.attribute)
        if value is not None:
            yield spec, value


def _many(spec: FieldSpec, values: Any) -> Any:
    if spec.cardinality == "map":
        return {key: _from_value(spec, values[key]) for key in values}
    return tuple(_from_value(spec, value) for value in values)


def _from_value(spec: FieldSpec, value: Any) -> Any:
    if spec.is_message:
        return from_message(value, spec.type)
    if spec.is_enum:
        return spec.type(value)
    return float32(value) if spec.scalar == "float" else value

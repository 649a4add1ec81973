"""Parser of message tables in the notation of .proto files: `repeated int64 shape = 3; map<string, T> parameters = 4`.

The name of a nested message begins with its parent's, and a parent precedes its nested messages. `one of` before a
field puts it and the following fields into a oneof.
"""

import re
from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

_FIELD = re.compile(r"(one of )?(repeated )?(?:map<string, ([\w.]+)>|([\w.]+)) (\w+) = (\d+)")
_SCALARS = frozenset(("bool", "int32", "int64", "uint32", "uint64", "float", "double", "string", "bytes"))
_OPTIONAL, _REPEATED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED


def declare(file: FileDescriptorProto, messages: Mapping[str, str], oneof: str) -> None:
    """Add these messages to the file; `oneof` is the name of their oneofs. Raises ValueError for an invalid field."""
    declared: dict[str, DescriptorProto] = {}
    for name, fields in messages.items():
        parent, _, own = name.rpartition(".")
        declared[name] = declared[parent].nested_type.add(name=own) if parent else file.message_type.add(name=own)
        for text in fields.split("; ") if fields else ():
            _add_field(declared[name], f".{file.package}.", name, text, oneof)


def _add_field(message: DescriptorProto, scope: str, owner: str, text: str, oneof: str) -> None:
    """Add the field that `text` declares to the message `owner`, in the package `scope`."""
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"{owner}: '{text}' declares no field")
    one_of, repeated, mapped, type_name, name, number = match.groups()
    field = message.field.add(name=name, number=int(number), label=_REPEATED if repeated or mapped else _OPTIONAL)
    if one_of:
        message.oneof_decl.add(name=oneof)
    if message.oneof_decl:
        field.oneof_index = 0
    if not mapped:
        _set_type(field, scope, type_name)
        return
    entry = message.nested_type.add(name="".join(map(str.capitalize, name.split("_"))) + "Entry")
    entry.options.map_entry = True
    _set_type(entry.field.add(name="key", number=1, label=_OPTIONAL), scope, "string")
    _set_type(entry.field.add(name="value", number=2, label=_OPTIONAL), scope, mapped)
    _set_type(field, scope, f"{owner}.{entry.name}")


def _set_type(field: FieldDescriptorProto, scope: str, name: str) -> None:
    if name in _SCALARS:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = scope + name

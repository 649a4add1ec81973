"""Field specs: map each dataclass of a model configuration to its protobuf message, one `Wire` per field.

The dataclasses are the only source: descriptors, the text and JSON readers and the writers all walk these specs.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

_T = TypeVar("_T")
_SCALARS = {str: "string", bool: "bool"}

# Reading the type hints of a class takes 50 µs, so it is done once for each of them.
_SPECS: "dict[type, Mapping[str, FieldSpec]]" = {}

# An enum class cannot carry a plain attribute, so the names of the nested enums are kept here.
_NESTED_ENUMS = {
    "InstanceKind": "ModelInstanceGroup.Kind",
    "SecondaryDeviceKind": "ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind",
    "InputFormat": "ModelInput.Format",
    "BatchInputKind": "BatchInput.Kind",
    "BatchOutputKind": "BatchOutput.Kind",
    "ModelPriority": "ModelOptimizationPolicy.ModelPriority",
    "TimeoutAction": "ModelQueuePolicy.TimeoutAction",
    "SequenceControlKind": "ModelSequenceBatching.Control.Kind",
}


@dataclass(frozen=True, slots=True)
class Wire:
    """The protobuf side of a field: its number, its scalar type where Python's type leaves it open, and its oneof.

    For a map, `scalar` is the type of the key.
    """

    number: int
    scalar: str = ""
    oneof: str = ""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field as readers and writers need it.

    `name` is the protobuf name, `attribute` the dataclass's (they differ where the name is a Python keyword).
    `scalar` is the protobuf type of a scalar value ("" for enums and messages), `type` the Python class of one value,
    `key` the protobuf type of a map's key ("" when the field is no map).
    """

    name: str
    attribute: str
    number: int
    cardinality: Literal["optional", "repeated", "map"]
    type: type
    scalar: str
    key: str
    oneof: str

    @property
    def is_message(self) -> bool:
        """Whether a value is another configuration message."""
        return not self.scalar and not self.is_enum

    @property
    def is_enum(self) -> bool:
        """Whether a value is one of an enum's."""
        return issubclass(self.type, IntEnum)

    @property
    def map_key(self) -> "FieldSpec":
        """The key of this map as a field of its own, as protobuf has it in the map's entries."""
        return FieldSpec("key", "key", 1, "optional", str if self.key == "string" else int, self.key, "", "")

    @property
    def map_value(self) -> "FieldSpec":
        """The value of this map as a field of its own."""
        return FieldSpec("value", "value", 2, "optional", self.type, self.scalar, "", "")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[_T]) -> type[_T]:
    """Make a configuration message: a frozen keyword-only dataclass with slots.

    The messages share what compares and shows them: to generate it for each takes half of the import of this package.
    """
    shared = {"__eq__": _equal, "__hash__": _hash, "__repr__": _show}
    for name, method in shared.items():
        setattr(cls, name, method)
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(cls)


def _values(message: Any) -> tuple[Any, ...]:
    return tuple([getattr(message, name) for name in message.__slots__])


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({fields})"


def proto_name(cls: type) -> str:
    """The name of the protobuf message or enum that `cls` stands for, without its package."""
    return str(getattr(cls, "PROTO", _NESTED_ENUMS.get(cls.__name__, cls.__name__)))


def specs(cls: type) -> Mapping[str, FieldSpec]:
    """Every field of the message class `cls`, by protobuf name, in the order of declaration."""
    specs = _SPECS.get(cls)
    if specs is None:
        hints = typing.get_type_hints(cls, include_extras=True)
        fields = (_spec(name, hint) for name, hint in hints.items() if typing.get_origin(hint) is Annotated)
        specs = _SPECS[cls] = {spec.name: spec for spec in fields}
    return specs


def classes_of(root: type) -> set[type]:
    """The message and enum classes that a message class is made of, itself included."""
    classes: set[type] = set()
    waiting = [root]
    while waiting:
        cls = waiting.pop()
        if cls in classes:
            continue
        classes.add(cls)
        if not issubclass(cls, IntEnum):
            waiting += [spec.type for spec in specs(cls).values() if not spec.scalar]
    return classes


def _spec(name: str, hint: Any) -> FieldSpec:
    python, wire = typing.get_args(hint)
    origin, arguments = typing.get_origin(python), typing.get_args(python)
    if origin is tuple:
        return _field(name, wire, "repeated", arguments[0])
    if origin is not None and issubclass(origin, Mapping):
        key = wire.scalar or "string"
        return _field(name, Wire(wire.number), "map", arguments[1], key)
    if origin in (types.UnionType, typing.Union):
        python = arguments[0]
    return _field(name, wire, "optional", python)


def _field(
    name: str, wire: Wire, cardinality: Literal["optional", "repeated", "map"], python: type, key: str = ""
) -> FieldSpec:
    scalar = wire.scalar or _SCALARS.get(python, "")
    return FieldSpec(name.rstrip("_"), name, wire.number, cardinality, python, scalar, key, wire.oneof)

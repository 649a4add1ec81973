"""Collector of the mistakes in a configuration, with the same messages for protobuf text and for JSON."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from naiad_config.errors import MOST_PROBLEMS, Problem
from naiad_config.fields import FieldSpec, proto_name, specs
from naiad_config.lexer import Position

NOWHERE: Position = (0, 0)


class Mistakes:
    """The problems of one configuration, in the order of finding, at most one more than a ConfigError lists."""

    def __init__(self, file: str = "") -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, message: str, path: str = "", position: Position = NOWHERE, hint: str = "") -> None:
        """Note one problem of the key at `path`."""
        if not self._are_too_many():
            self.problems.append(Problem(message, path, self.file, *position, hint=hint))

    def unknown_key(self, cls: type, key: str, path: str, position: Position = NOWHERE) -> None:
        """Note a key that the message class does not have, with the nearest that it has."""
        if self._are_too_many():  # a load request may have millions of keys, and the nearest takes 0.1 ms
            return
        owner = "a model configuration" if proto_name(cls) == "ModelConfig" else f"{proto_name(cls)}"
        self.add(f"unknown key '{key}' in {owner}", path, position, _key_hint(cls, key))

    def unknown_enum(self, enum: type[IntEnum], value: str, path: str, position: Position = NOWHERE) -> None:
        """Note a value that the enum does not have, with the nearest that it has."""
        if self._are_too_many():
            return
        names = [member.name for member in enum]
        near = nearest(value.upper(), names) or nearest(f"{names[0].split('_')[0]}_{value.upper()}", names)
        hint = f"did you mean '{near}'?" if near else f"use one of {', '.join(names)}"
        self.add(f"unknown value '{value}'", path, position, hint)

    def repeated(self, key: str, path: str, position: Position = NOWHERE) -> None:
        """Note a key that takes one value and was given twice."""
        self.add(f"'{key}' is given more than once", path, position, "keep one of them")

    def oneof(self, first: str, second: str, path: str, position: Position = NOWHERE) -> None:
        """Note two keys that exclude each other."""
        self.add(f"'{second}' and '{first}' exclude each other", path, position, "keep one of them")

    def wrong_type(self, spec: FieldSpec, actual: str, path: str, position: Position = NOWHERE) -> None:
        """Note a value of another type than the field's; `actual` describes the value."""
        self.add(f"expected {expectation(spec)}, found {actual}", path, position)

    def _are_too_many(self) -> bool:
        return len(self.problems) > MOST_PROBLEMS


def readable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields without those that could not be read, which are None, or a list with a None in it.

    Such a list is left out whole: the other elements would get other indices.
    """
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            kept[name] = {key: each for key, each in value.items() if key is not None and each is not None}
        elif isinstance(value, list | tuple):
            if not any(each is None for each in value):
                kept[name] = tuple(value)
        elif value is not None:
            kept[name] = value
    return kept


def expectation(spec: FieldSpec) -> str:
    """What a value of the field has to be, in words."""
    if spec.is_enum:
        return f"one of the names of {proto_name(spec.type)}"
    if spec.is_message:
        return "a message in braces"
    if spec.scalar in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[spec.scalar]
        return f"an integer from {lowest} to {highest}"
    return {"string": "a string in quotes", "bool": "true or false"}.get(spec.scalar, "a number")


INTEGER_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """The known name that looks most like `name`, or "" when none is as like as `likeness` (1.0 is equal)."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=likeness)
    return matches[0] if matches else ""


def _key_hint(cls: type, key: str) -> str:
    fields = specs(cls)
    near = nearest(key, fields, 0.85)
    if near:
        return f"did you mean '{near}'?"
    homes = [name for name, spec in fields.items() if spec.is_message and key in specs(spec.type)]
    if homes:
        return f"'{key}' belongs inside {_either(homes)}"
    near = nearest(key, fields)
    if near:
        return f"did you mean '{near}'?"
    return f"the keys here are {', '.join(fields)}" if fields else "it has no keys"


def _either(names: Sequence[str]) -> str:
    return " or ".join(f"'{name}'" for name in names)

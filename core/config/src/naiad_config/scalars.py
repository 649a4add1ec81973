"""Scalar values of protobuf text: words, numbers, strings and 32 bit floats."""

import math
import struct
from enum import IntEnum
from typing import Any

from naiad_config.fields import FieldSpec
from naiad_config.mistakes import INTEGER_RANGES, Mistakes
from naiad_config.tree import Leaf

_TRUE = {"true", "True", "t"}
_FALSE = {"false", "False", "f"}
_SPECIAL = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}


def read_scalar(leaf: Leaf, spec: FieldSpec, path: str, mistakes: Mistakes) -> Any:
    """The value that the leaf stands for in that field, or None after its mistake was noted."""
    value: Any
    if spec.is_enum:
        value = _enum(leaf, spec, path, mistakes)
    elif spec.scalar == "string":
        value = leaf.text if leaf.kind == "string" else None
    elif spec.scalar == "bool":
        value = _boolean(leaf)
    elif spec.scalar in INTEGER_RANGES:
        value = _bounded(_integer(leaf), spec.scalar)
    else:
        value = _real(leaf, spec.scalar)
    if value is None and not spec.is_enum:
        mistakes.wrong_type(spec, _described(leaf), path, leaf.position)
    return value


def float32(value: float) -> float:
    """The shortest decimal that means the same 32-bit float. Raises OverflowError when none is that large."""
    if math.isinf(value) or math.isnan(value):
        return value
    bits = struct.pack("<f", value)
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        if _bits_or_nothing(short) == bits:
            return short
    return float(f"{value:.9g}")


def _bits_or_nothing(value: float) -> bytes:
    """The 32-bit float nearest to the value; nothing when rounding to few digits has left its range."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return b""


def _enum(leaf: Leaf, spec: FieldSpec, path: str, mistakes: Mistakes) -> IntEnum | None:
    enum: type[IntEnum] = spec.type
    number = _integer(leaf)
    if number in set(enum):
        return enum(number)
    if leaf.kind == "word" and leaf.text in enum.__members__:
        return enum[leaf.text]
    if leaf.kind == "string" and leaf.text in enum.__members__:
        mistakes.add(f"'{leaf.text}' is in quotes", path, leaf.position, "write the name of the value without quotes")
    else:
        mistakes.unknown_enum(enum, leaf.text, path, leaf.position)
    return None


def _boolean(leaf: Leaf) -> bool | None:
    if leaf.kind == "word" and leaf.text in _TRUE:
        return True
    if leaf.kind == "word" and leaf.text in _FALSE:
        return False
    return {0: False, 1: True}.get(_integer(leaf))


def _integer(leaf: Leaf) -> int:
    """The integer that the leaf is; -2**80, which is in no field's range, when it is none."""
    if leaf.kind != "number":
        return -(2**80)
    text = leaf.text.lower()
    digits = text.lstrip("-")
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        return int(text, 8 if octal else 16 if digits.startswith("0x") else 10)
    except ValueError:
        return -(2**80)


def _bounded(number: int, scalar: str) -> int | None:
    lowest, highest = INTEGER_RANGES[scalar]
    return number if lowest <= number <= highest else None


def _real(leaf: Leaf, scalar: str) -> float | None:
    if leaf.kind == "string":
        return None
    text = leaf.text.lower()
    sign = -1.0 if text.startswith("-") else 1.0
    if leaf.kind == "word":
        special = _SPECIAL.get(text.removeprefix("-"))
        return None if special is None else sign * special
    try:
        value = float(text.removesuffix("f"))
        return float32(value) if scalar == "float" else value
    except (ValueError, OverflowError):
        return None


def _described(leaf: Leaf) -> str:
    return f'the string "{leaf.text}"' if leaf.kind == "string" else f"'{leaf.text}'"

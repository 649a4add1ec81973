"""Scalar values of a configuration from JSON: numbers, strings that hold numbers, and enums in any case."""

import math
import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from naiad_config.fields import FieldSpec
from naiad_config.mistakes import INTEGER_RANGES, Mistakes
from naiad_config.scalars import float32

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def read_scalar(value: Any, spec: FieldSpec, path: str, mistakes: Mistakes) -> Any:
    """The value that stands for a JSON value in that field, or None after its mistake was noted."""
    if spec.is_enum:
        return _enum(value, spec.type, path, mistakes)
    number = _plain(value, spec.scalar)
    if number is None:
        mistakes.wrong_type(spec, _described(value), path)
    return number


def _plain(value: Any, scalar: str) -> Any:
    if scalar == "string":
        return value if isinstance(value, str) else None
    if scalar == "bool":
        return value if isinstance(value, bool) else None
    if scalar in INTEGER_RANGES:
        return _integer(value, scalar)
    return _real(value, scalar)


def _enum(value: Any, enum: type[IntEnum], path: str, mistakes: Mistakes) -> IntEnum | None:
    if isinstance(value, int) and not isinstance(value, bool) and value in set(enum):
        return enum(value)
    if isinstance(value, str) and value.upper() in enum.__members__:
        return enum[value.upper()]
    mistakes.unknown_enum(enum, str(value), path)
    return None


def _integer(value: Any, scalar: str) -> int | None:
    """An integer in the scalar's range; 4.0 and "4" are 4, as in protobuf's JSON."""
    lowest, highest = INTEGER_RANGES[scalar]
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if lowest <= value <= highest else None


def _real(value: Any, scalar: str) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = _SPECIAL[value] if value in _SPECIAL else float(value)
        return float32(number) if scalar == "float" else number
    except (ValueError, OverflowError):
        return None


def _described(value: Any) -> str:
    if isinstance(value, str):
        return f'the string "{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return shown(value)


def shown(value: Any) -> str:
    """The value for a message: containers by their kind, as they may be long."""
    return "an object" if isinstance(value, Mapping) else "an array" if isinstance(value, list) else str(value)

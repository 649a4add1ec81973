"""Writer of a configuration as JSON, as the configuration endpoint returns it."""

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from naiad_config.fields import FieldSpec, specs
from naiad_config.model import ModelConfig
from naiad_config.optimization import CudaGraphShape
from naiad_config.placement import SecondaryDevice
from naiad_config.sequences import SequenceInitialState

_STRINGS = {(CudaGraphShape, "dim"), (SecondaryDevice, "device_id"), (SequenceInitialState, "dims")}
"""64-bit integers that clients get as strings, as protobuf's JSON has them; all others are numbers."""

_WHOLE = 2.0**53
"""From here up not every integer is a float, so that digits would be made up."""


def to_json(config: ModelConfig) -> dict[str, Any]:
    """The configuration as a JSON object of dicts, lists, strings, numbers and booleans.

    Names are those of the .proto file and enums are written by name. Scalars, lists and maps are there even when they
    are empty; messages and members of a oneof only when they are set.
    """
    return _message(config)


def _message(message: Any) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for spec in specs(type(message)).values():
        value = getattr(message, spec.attribute)
        if value is not None:
            document[spec.name] = _field(type(message), spec, value)
    return document


def _field(owner: type, spec: FieldSpec, value: Any) -> Any:
    as_string = (owner, spec.name) in _STRINGS
    if spec.cardinality == "map":
        return _map(value)
    if spec.cardinality == "repeated":
        return [_value(one, as_string) for one in value]
    return _value(value, as_string)


def _map(entries: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): _value(value, as_string=False) for key, value in entries.items()}


def _value(value: Any, as_string: bool) -> Any:
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return str(value) if as_string else value
    if isinstance(value, float):
        return _float(value)
    return _message(value)


def _float(value: float) -> float | int | str:
    """As protobuf's JSON has it: `1` for 1.0, and texts for what JSON has no numbers for."""
    if not math.isfinite(value):
        return _not_finite(value)
    is_exact = value.is_integer() and abs(value) < _WHOLE and str(value) != "-0.0"  # which no integer is
    return int(value) if is_exact else value


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

"""Request parameters: those that the protocol gives a meaning, and the caller's own, which go to the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad.types import ParameterValue
from naiad_http.codec.documents import as_boolean, as_unsigned

RESERVED_PREFIX = "triton_"
RESERVED_NAMES = frozenset(
    ("sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output")
)
"""Names that a forwarded header must not have."""

_MAX_INT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Parameters:
    """The `parameters` of a request; `own` are the caller's, the rest is what the protocol knows."""

    priority: int = 0
    timeout_microseconds: int = 0
    correlation_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    binary_outputs: bool = False
    own: Mapping[str, ParameterValue] = field(default_factory=dict)


NO_PARAMETERS = Parameters()


def read_parameters(given: Mapping[str, Any]) -> Parameters:
    """The parameters of a request's JSON. Raises InvalidArgumentError for a wrong type, range or name."""
    known: dict[str, Any] = {}
    own: dict[str, ParameterValue] = {}
    for key, value in given.items():
        if key == "binary_data_output":
            known["binary_outputs"] = as_boolean(value, key)
        elif key in ("sequence_start", "sequence_end"):
            known[key] = as_boolean(value, key)
        elif key == "sequence_id":
            known["correlation_id"] = value if type(value) is str else as_unsigned(value, key)
        elif key == "priority":
            known["priority"] = as_unsigned(value, key, _MAX_INT)
        elif key == "timeout":
            known["timeout_microseconds"] = as_unsigned(value, key, _MAX_INT)
        else:
            own[key] = _own_parameter(key, value)
    return Parameters(**known, own=own)


def _own_parameter(key: str, value: Any) -> ParameterValue:
    if key.startswith(RESERVED_PREFIX):
        raise InvalidArgumentError(
            f"parameter keys starting with '{RESERVED_PREFIX}' are reserved for Triton usage and should not be "
            f"specified: '{key}'"
        )
    if type(value) is int and not -_MAX_INT - 1 <= value <= _MAX_INT:
        raise InvalidArgumentError(f"parameter '{key}' does not fit a signed 64-bit integer: {value}")
    if isinstance(value, str | bool | int | float):
        return value
    raise InvalidArgumentError(
        f"parameter '{key}' has invalid type. It should be either 'int', 'bool', 'double', or 'string'."
    )

"""Decoder of the `parameters` of a request, an input or an output: `InferParameter` messages to values."""

from collections.abc import Mapping
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad.types import ParameterValue
from naiad_kit.frontends.parameters import MAX_INT, NO_PARAMETERS, RESERVED_PREFIX, Parameters, own_parameter

EMPTY_FINAL = "triton_enable_empty_final_response"
_ALLOWED = f". Only the following keys starting with '{RESERVED_PREFIX}' are allowed: {EMPTY_FINAL}"
_FLAGS = {"sequence_start": "sequence_start", "sequence_end": "sequence_end", EMPTY_FINAL: "empty_final"}


def read_parameters(messages: Mapping[str, Any]) -> Parameters:
    """The parameters of a request. Raises InvalidArgumentError for a wrong type, range or name."""
    if not messages:
        return NO_PARAMETERS
    known: dict[str, Any] = {}
    own: dict[str, ParameterValue] = {}
    for key, parameter in messages.items():
        if key in _FLAGS:
            known[_FLAGS[key]] = parameter_of(parameter, key, "bool_param")
        elif key == "sequence_id":
            known["correlation_id"] = _correlation_id(parameter)
        elif key == "priority":
            # a priority above the highest level means the default level, so a value beyond int64 may be rounded
            known["priority"] = min(_not_negative(parameter, key, "int64_param", "uint64_param"), MAX_INT)
        elif key == "timeout":
            known["timeout_microseconds"] = _not_negative(parameter, key, "int64_param")
        else:
            own[key] = _own(key, parameter)
    return Parameters(**known, own=own)


def parameter_of(parameter: Any, key: str, *allowed: str, where: str = "") -> Any:
    """The value of a parameter, which must be of one of the `allowed` kinds; `where` ends the name of it in errors."""
    kind = parameter.WhichOneof("parameter_choice")
    if kind not in allowed:
        raise InvalidArgumentError(
            f"invalid value type for '{key}' parameter{where}, expected {' or '.join(allowed)}."
            f"{f' It has {kind}.' if kind else ' It has no value.'}"
        )
    return getattr(parameter, kind)


def size_of(parameter: Any, key: str, where: str) -> int:
    """The value of a parameter that is a number of bytes or of classes. Raises InvalidArgumentError."""
    return _not_negative(parameter, key, "int64_param", where=where)


def _correlation_id(parameter: Any) -> int | str:
    value: int | str = parameter_of(parameter, "sequence_id", "int64_param", "string_param")
    # clients put ids of 64 unsigned bits into the one integer field that there is
    return value & 0xFFFFFFFFFFFFFFFF if isinstance(value, int) else value


def _not_negative(parameter: Any, key: str, *allowed: str, where: str = "") -> int:
    value: int = parameter_of(parameter, key, *allowed, where=where)
    if value < 0:
        raise InvalidArgumentError(f"invalid value for '{key}'{where}, expected value >= 0. It is {value}.")
    return value


def _own(key: str, parameter: Any) -> ParameterValue:
    if key.startswith(RESERVED_PREFIX):
        return own_parameter(key, "", _ALLOWED)
    kind = parameter.WhichOneof("parameter_choice")
    if kind is None or kind == "uint64_param":
        raise InvalidArgumentError(
            f"invalid value type for '{key}' parameter, expected int64_param, bool_param, or string_param "
            "(double_param is taken too)."
        )
    value: ParameterValue = getattr(parameter, kind)
    return value

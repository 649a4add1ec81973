"""Decoder of the `parameters` object of a request's JSON."""

from collections.abc import Mapping
from typing import Any

from naiad.types import ParameterValue
from naiad_http.codec.documents import as_boolean, as_unsigned
from naiad_kit.frontends.parameters import MAX_INT, Parameters, own_parameter


def read_parameters(document: Mapping[str, Any]) -> Parameters:
    """The parameters of a request's JSON. Raises InvalidArgumentError for a wrong type, range or name."""
    known: dict[str, Any] = {}
    own: dict[str, ParameterValue] = {}
    for key, value in document.items():
        if key == "binary_data_output":
            known["binary_outputs"] = as_boolean(value, key)
        elif key in ("sequence_start", "sequence_end"):
            known[key] = as_boolean(value, key)
        elif key == "sequence_id":
            known["correlation_id"] = value if type(value) is str else as_unsigned(value, key)
        elif key == "priority":
            # a priority above the highest level means the default level, so a value beyond int64 may be clipped
            known["priority"] = min(as_unsigned(value, key), MAX_INT)
        elif key == "timeout":
            known["timeout_microseconds"] = as_unsigned(value, key)
        else:
            own[key] = own_parameter(key, value)
    return Parameters(**known, own=own)

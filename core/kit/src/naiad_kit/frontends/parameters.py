"""Request parameters: the reserved ones of the protocol, the caller's own, which the model gets, and those of loads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad.types import ParameterValue

RESERVED_PREFIX = "triton_"
RESERVED_NAMES = frozenset(
    ("sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output")
)
"""Names that a forwarded header must not have."""

MAX_INT = 2**63 - 1
"""The largest integer that a parameter can have."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The `parameters` of a request; `own` are the caller's, the rest is what the protocol knows.

    `empty_final` asks for the last, empty response of a decoupled model (`triton_enable_empty_final_response`).
    """

    priority: int = 0
    timeout_microseconds: int = 0
    correlation_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    binary_outputs: bool = False
    empty_final: bool = False
    own: Mapping[str, ParameterValue] = field(default_factory=dict)


NO_PARAMETERS = Parameters()


def own_parameter(key: str, value: Any, allowed: str = "") -> ParameterValue:
    """A parameter of the caller's own. Raises InvalidArgumentError for a reserved name, a wrong type, or range.

    `allowed` ends the sentence about a reserved name: which of these names there are.
    """
    if key.startswith(RESERVED_PREFIX):
        raise InvalidArgumentError(
            f"parameter keys starting with '{RESERVED_PREFIX}' are reserved for Triton usage"
            f"{allowed or ' and should not be specified'}: '{key}'"
        )
    if type(value) is int and not -MAX_INT - 1 <= value <= MAX_INT:
        raise InvalidArgumentError(f"parameter '{key}' does not fit a signed 64-bit integer: {value}")
    if isinstance(value, str | bool | int | float):
        return value
    raise InvalidArgumentError(
        f"parameter '{key}' has invalid type. It should be either 'int', 'bool', 'double', or 'string'."
    )


def load_config(config: str) -> str:
    """The `config` of a load request. Raises InvalidArgumentError for an empty one, which may have been lost."""
    if not config.strip():
        raise InvalidArgumentError(
            "load parameter 'config' is empty; leave it out to load the model with the configuration of its folder"
        )
    return config

"""Parameters of responses: the names and values that every wire protocol can carry."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from naiad_config.errors import ModelFailedError
from naiad_tensors.datatypes import is_text


def check_parameters(parameters: Mapping[Any, Any], model: str) -> None:
    """Raise ModelFailedError for a parameter of a response that some protocol cannot carry."""
    for name, value in parameters.items():
        if not (type(name) is str and is_text(name)):
            raise ModelFailedError(f"model '{model}' gave a parameter of its response the name {name!r:.80}; use text")
        if not _can_be_sent(value.item() if isinstance(value, np.generic) else value):
            raise ModelFailedError(
                f"model '{model}' gave its response the parameter '{name:.80}' = {value!r:.80}; "
                "use a bool, an integer of 64 bits, a float, or text that UTF-8 can carry"
            )


def _can_be_sent(value: Any) -> bool:
    if isinstance(value, str):
        return is_text(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, float)

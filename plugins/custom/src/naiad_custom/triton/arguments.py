"""Checks of the arguments of `pb_utils.InferenceRequest`, before another model is called."""

import json
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from naiad.types import ParameterValue
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.tensor import Tensor


def a_text(name: str, value: Any) -> str:
    """The value as a str; bytes are UTF-8. Raises TypeError when it is neither."""
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(_wrong(name, "a str", value))
    return value


def a_number(name: str, value: Any) -> int:
    """The value as an int, also that of numpy. Raises TypeError when it is not a whole number."""
    try:
        return index(value)
    except TypeError:
        raise TypeError(_wrong(name, "an int", value)) from None


def a_correlation_id(value: Any) -> int | str:
    """The value itself. Raises TritonModelException when it names no sequence."""
    if isinstance(value, str):
        return value
    try:
        number = index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise TritonModelException(
            f"Correlation ID must be integer or string: an int from 0 to 2^64 - 1, or a str; found {value!r:.100}"
        )
    return number


def by_name(inputs: Any) -> dict[str, Tensor]:
    """The tensors by their names. Raises TypeError for what is none, TritonModelException for two of one name."""
    tensors: dict[str, Tensor] = {}
    if not isinstance(inputs, Iterable) or isinstance(inputs, str):
        raise TypeError(_wrong("inputs", "a list of pb_utils.Tensor", inputs))
    for number, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor):
            raise TypeError(_wrong(f"inputs[{number}]", "a pb_utils.Tensor, such as Tensor('x', array)", tensor))
        if tensor.name() in tensors:
            raise TritonModelException(f"input '{tensor.name()}' already exists in request; give each name once")
        tensors[tensor.name()] = tensor
    return tensors


def names(requested: Any) -> tuple[str, ...]:
    """The names of the outputs. Raises TypeError if the value is not a list of str."""
    if not isinstance(requested, Iterable) or isinstance(requested, str):
        raise TypeError(_wrong("requested_output_names", "a list of str", requested))
    return tuple(a_text(f"requested_output_names[{number}]", name) for number, name in enumerate(requested))


def a_dict(parameters: Any) -> Mapping[str, ParameterValue]:
    """The parameters, given as a dict or as JSON. Raises TritonModelException for what no model could be sent."""
    if parameters is None:
        return {}
    if isinstance(parameters, str):
        try:
            parameters = json.loads(parameters)
        except ValueError as error:
            raise TritonModelException(f"the parameters of a request are no JSON: {error}") from error
    if not isinstance(parameters, Mapping):
        raise TritonModelException(
            f"the parameters of a request are a dict, or a JSON object as text, not {parameters!r}"
        )
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(key)}: {key!r:.100}")
        if not isinstance(value, bool | int | float | str):
            raise TritonModelException(
                f"Expect parameters values to have type bool/int/str, found type {type(value)} for '{key}'"
            )
    return dict(parameters)


def _wrong(name: str, expected: str, value: Any) -> str:
    return f"{name} of pb_utils.InferenceRequest must be {expected}, not {type(value).__name__}"

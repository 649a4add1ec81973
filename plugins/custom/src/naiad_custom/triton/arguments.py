"""Checks of the arguments of `pb_utils.InferenceRequest`, before another model is called."""

import json
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, TypeVar

from naiad.types import ParameterValue
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.tensor import Tensor
from naiad_custom.triton.texts import a_number, text_of

_T = TypeVar("_T")


class Missing:
    """Stands for an argument that has to be there."""


MISSING: Any = Missing()


def text(name: str, value: Any) -> str:
    """The text of an argument. Raises TypeError for what is none."""
    return text_of(_subject(name), value)


def number(name: str, value: Any, bits: int, signed: bool = False) -> int:
    """The number of an argument. Raises TypeError for what is no whole number of so many bits."""
    return a_number(_subject(name), value, bits, signed)


def instance_of(name: str, value: Any, kind: type[_T]) -> _T:
    """The value itself. Raises TypeError for one of another type."""
    if not isinstance(value, kind):
        raise TypeError(_wrong(name, f"a pb_utils.{kind.__name__}", value))
    return value


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


def a_version(value: Any) -> int:
    """The version, 0 for -1: the one that the model's policy chooses. Raises TritonModelException for other numbers."""
    version = number("model_version", value, 64, signed=True)
    if version == -1:
        return 0
    if version < 1:
        raise TritonModelException(
            f"{_subject('model_version')} must be a version from 1 on, or -1 for the one that the model's policy "
            f"chooses, not {version}"
        )
    return version


def by_name(inputs: Any, subject: str) -> dict[str, Tensor]:
    """The tensors by their names; `subject` is the request in words.

    Raises TypeError for what is no tensor, TritonModelException for None and for two of one name.
    """
    tensors: dict[str, Tensor] = {}
    if not isinstance(inputs, Sequence) or isinstance(inputs, str | bytes):
        raise TypeError(_wrong("inputs", "a list of pb_utils.Tensor", inputs))
    for at, tensor in enumerate(inputs):
        if tensor is None:
            raise TritonModelException(f"Input tensor for {subject} should not be empty.")
        if not isinstance(tensor, Tensor):
            expected = "a pb_utils.Tensor, such as Tensor('x', array)"
            raise TypeError(_wrong(f"inputs[{at}]", expected, tensor))
        if tensor.name() in tensors:
            raise TritonModelException(f"input '{tensor.name()}' already exists in request; give each name once")
        tensors[tensor.name()] = tensor
    return tensors


def names(requested: Any) -> tuple[str, ...]:
    """The names of the outputs. Raises TypeError if the value is not a list of str."""
    if not isinstance(requested, Sequence) or isinstance(requested, str | bytes):
        raise TypeError(_wrong("requested_output_names", "a list of str", requested))
    return tuple(text(f"requested_output_names[{at}]", name) for at, name in enumerate(requested))


def a_dict(parameters: Any) -> Mapping[str, ParameterValue]:
    """The parameters, given as a dict or as JSON. Raises TritonModelException for what no model could be sent."""
    if parameters is None:
        return {}
    if isinstance(parameters, str):
        try:
            parameters = json.loads(parameters)
        except ValueError as error:
            raise TritonModelException(f"the parameters of a request are not valid JSON: {error}") from error
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
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise TritonModelException(f"parameter '{key}' does not fit a signed 64-bit integer: {value}")
    return dict(parameters)


def _wrong(name: str, expected: str, value: Any) -> str:
    return f"{_subject(name)} must be {expected}, not {type(value).__name__}"


def _subject(name: str) -> str:
    return f"{name} of pb_utils.InferenceRequest"

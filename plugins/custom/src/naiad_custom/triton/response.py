"""`pb_utils.InferenceResponse`: the response to one request."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from naiad.types import ParameterValue
from naiad_custom.triton.errors import TritonError, TritonModelException
from naiad_custom.triton.tensor import Tensor

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class InferenceResponse:
    """The outputs for one request, or the error that it gets instead.

    `parameters` have `str` keys and bool, int or str values. Raises TypeError for arguments of other types, and
    TritonModelException for None among the outputs and for other parameters.
    """

    __slots__ = ("_error", "_output_tensors", "_parameters")

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: Mapping[str, bool | int | str] | None = None,
    ) -> None:
        output_tensors = [*output_tensors] if type(output_tensors) is list else _listed(output_tensors)
        for each in output_tensors:
            if type(each) is not Tensor:
                _check_tensor(each)
        if error is not None and not isinstance(error, TritonError):
            raise TypeError(f"the error of a pb_utils.InferenceResponse must be a TritonError, not {_kind(error)}")
        self._output_tensors = output_tensors
        self._error = error
        self._parameters: Mapping[str, ParameterValue] = _NONE if parameters is None else _checked(parameters)

    def output_tensors(self) -> list[Tensor]:
        """The outputs."""
        return list(self._output_tensors)

    def has_error(self) -> bool:
        """Whether the request gets an error."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """The error, None without one."""
        return self._error

    def parameters(self) -> str:
        """The parameters as the text of a JSON object."""
        return json.dumps(dict(self._parameters))


_NONE: dict[str, bool | int | str] = {}


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str | bytes) -> Tensor | None:
    """The response's output of that name, None when it has none."""
    if isinstance(name, bytes):
        name = name.decode()
    return next((tensor for tensor in inference_response.output_tensors() if tensor.name() == name), None)


def _listed(tensors: Any) -> list[Any]:
    if not isinstance(tensors, Sequence) or isinstance(tensors, str | bytes):
        raise TypeError(f"output_tensors of a pb_utils.InferenceResponse must be a list, not {_kind(tensors)}")
    return list(tensors)


def _check_tensor(tensor: Any) -> None:
    if tensor is None:
        raise TritonModelException("Output tensor for inference response should not be empty.")
    if not isinstance(tensor, Tensor):
        raise TypeError(f"the outputs of a pb_utils.InferenceResponse must be of pb_utils.Tensor, not {_kind(tensor)}")


def _kind(value: object) -> str:
    return type(value).__name__


def _checked(parameters: Mapping[str, bool | int | str]) -> dict[str, bool | int | str]:
    if not isinstance(parameters, Mapping):
        raise TritonModelException(f"the parameters of a response must be a dict, found type {type(parameters)}")
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(
                f"Expect parameters keys to have type str, found type {type(key)}; give response parameters str keys"
            )
        if not isinstance(value, bool | int | str):
            raise TritonModelException(
                f"Expect parameters values to have type bool/int/str, found type {type(value)} for '{key}'"
            )
    return dict(parameters)

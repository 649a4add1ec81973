"""`pb_utils.InferenceResponse`: the response to one request."""

import json
from collections.abc import Mapping, Sequence

from naiad.types import ParameterValue
from naiad_custom.triton.errors import TritonError, TritonModelException
from naiad_custom.triton.tensor import Tensor

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class InferenceResponse:
    """The outputs for one request, or the error that it gets instead.

    `parameters` have `str` keys and bool, int or str values. Raises TritonModelException for anything else.
    """

    __slots__ = ("_error", "_output_tensors", "_parameters")

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: Mapping[str, bool | int | str] | None = None,
    ) -> None:
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


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """The response's output of that name, None when it has none."""
    return next((tensor for tensor in inference_response.output_tensors() if tensor.name() == name), None)


def _checked(parameters: Mapping[str, bool | int | str]) -> dict[str, bool | int | str]:
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

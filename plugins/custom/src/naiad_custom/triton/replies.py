"""From an InferenceResponse to what the kernel sends."""

from collections.abc import Iterable
from typing import Any, Protocol

from naiad.backend import Reply
from naiad.errors import ModelFailedError, NaiadError
from naiad.types import bytes_array
from naiad_custom.ownership import are_fresh, settle
from naiad_custom.triton.errors import TritonError, as_naiad_error
from naiad_custom.triton.response import InferenceResponse


class HasInputs(Protocol):
    """Knows the arrays of a request."""

    def _payloads(self) -> Iterable[Any]: ...


def reply_of(response: InferenceResponse, request: HasInputs) -> Reply | NaiadError:
    """The outputs of a response, or its error. An output that the model still holds is copied, an input is not."""
    if response._error is not None:
        return _told(response._error)
    outputs = {
        each._name: bytes_array(each._payload) if each._datatype == "BYTES" else each._payload
        for each in response._output_tensors
    }
    if not are_fresh(outputs, _HOLDERS):
        settle(outputs, request._payloads(), _HOLDERS)
    return Reply(outputs, response._parameters)


_HOLDERS = 1
"""Who holds an output array beside the dict of outputs: its tensor."""


def _told(error: Any) -> NaiadError:
    if isinstance(error, TritonError):
        return as_naiad_error(error)
    return ModelFailedError(str(error))

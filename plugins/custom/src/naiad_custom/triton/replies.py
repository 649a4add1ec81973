"""Conversion of an `InferenceResponse` to the kernel's reply."""

from collections.abc import Iterable
from sys import getrefcount
from typing import Any, Protocol

import numpy as np

from naiad.backend import Reply
from naiad.errors import ModelFailedError, NaiadError
from naiad_custom.ownership import settle
from naiad_custom.triton.errors import TritonError, as_naiad_error
from naiad_custom.triton.response import InferenceResponse
from naiad_custom.triton.tensor import Tensor
from naiad_kit.own_process import in_own_process
from naiad_tensors.tensors import bytes_array


class HasInputs(Protocol):
    """Knows the arrays of a request."""

    def _payloads(self) -> Iterable[Any]: ...

    def _holders_of(self, payload: Any) -> int: ...


def reply_of(response: InferenceResponse, request: HasInputs) -> Reply | NaiadError:
    """The outputs of a response, or its error.

    An output whose array the model still holds is copied, an input is not. Where the model holds the tensor alone, the
    array becomes read-only: `as_numpy` of the tensor then gives a copy.
    """
    if response._error is not None:
        return _as_error(response._error)
    outputs: dict[str, Any] = {}
    is_settled, may_share = True, in_own_process()
    for each in response._output_tensors:
        payload = bytes_array(each._payload) if each._datatype == "BYTES" else each._payload
        if not may_share:
            is_shared, holders = getrefcount(each) > _UNSHARED, getrefcount(payload)
            if holders > _FRESH and not is_shared:
                holders -= request._holders_of(payload)
            if (
                holders > _FRESH
                or type(payload) is not _ndarray
                or not (payload.base is None and payload.flags.owndata)
            ):
                if is_shared:
                    payload = _copy_unless_input(payload, request)
                else:
                    is_settled = False
            elif is_shared:  # the model may write to the array through the tensor
                payload.flags.writeable = False
        outputs[each._name] = payload
    payload = None  # a reference less, so that a fresh array is known to be fresh
    if not is_settled:
        settle(outputs, request._payloads(), _HOLDERS)
    return Reply(outputs, response._parameters)


def _copy_unless_input(payload: Any, request: HasInputs) -> Any:
    """A copy of the output, or itself if it is a read-only input of the request: as `settle` decides."""
    if type(payload) is _ndarray and payload.nbytes <= _FEW_BYTES and not payload.dtype.hasobject:
        return _ndarray(payload.shape, payload.dtype, payload.tobytes())
    outputs = {"": payload}
    settle(outputs, request._payloads())
    return outputs[""]


def _references(response: InferenceResponse) -> tuple[int, int]:
    """The references to a tensor that only its response holds, and to an array that only this tensor holds."""
    tensor = array = 0
    for each in response._output_tensors:
        payload = each._payload
        tensor, array = getrefcount(each), getrefcount(payload)
    return tensor, array


_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs
_FEW_BYTES = 8192
"""To copy so many bytes takes less time than to find out which objects can write to them."""

_HOLDERS = 1
"""How many objects refer to an output array beside the dict of outputs: its tensor."""

_UNSHARED, _FRESH = _references(InferenceResponse([Tensor("output", np.empty(1))]))
"""They differ between versions of Python."""


def _as_error(error: Any) -> NaiadError:
    if isinstance(error, TritonError):
        return as_naiad_error(error)
    return ModelFailedError(str(error))

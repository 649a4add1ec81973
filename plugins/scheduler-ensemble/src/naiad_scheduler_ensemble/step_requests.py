"""Requests to steps: their tensors and parameters, and the sequence flags of their responses."""

from collections.abc import Mapping

import numpy as np

from naiad.types import ParameterValue, Request
from naiad_scheduler_ensemble.moves import SequenceFlags
from naiad_tensors.devices import DeviceTensor
from naiad_tensors.tensors import Tensor

_NOTHING: Mapping[str, ParameterValue] = {}


def tensors_of(values: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The tensors under these names, over the same memory, in the given shapes where there are any."""
    if shapes:
        values = {name: _reshaped(value, shapes[name]) if name in shapes else value for name, value in values.items()}
    return {
        name: value if value.name == name else Tensor(name, value.datatype, value.shape, value.payload)
        for name, value in values.items()
    }


def _reshaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    payload = tensor.payload
    if isinstance(payload, np.ndarray | DeviceTensor):
        payload = payload.reshape(shape)
    return Tensor(tensor.name, tensor.datatype, shape, payload)


def flags_in(parameters: Mapping[str, ParameterValue]) -> SequenceFlags | None:
    """What a response says of the sequence, None when it says nothing."""
    correlation_id = parameters.get("sequence_id")
    start, end = parameters.get("sequence_start"), parameters.get("sequence_end")
    if correlation_id is None and start is None and end is None:
        return None
    return SequenceFlags(
        correlation_id if isinstance(correlation_id, int | str) and not isinstance(correlation_id, bool) else None,
        None if start is None else bool(start),
        None if end is None else bool(end),
    )


def parameters_of(request: Request, flags: SequenceFlags | None) -> Mapping[str, ParameterValue]:
    """What a response says of the sequence that it belongs to; nothing outside of one."""
    if flags is None and not request.correlation_id:
        return _NOTHING
    said = flags or SequenceFlags()
    return {
        "sequence_id": request.correlation_id if said.correlation_id is None else said.correlation_id,
        "sequence_start": request.sequence_start if said.start is None else said.start,
        "sequence_end": request.sequence_end if said.end is None else said.end,
    }


def override(request: Request, flags: SequenceFlags) -> None:
    """Write what a step said of the sequence over what the request says."""
    if flags.correlation_id is not None:
        request.correlation_id = flags.correlation_id
    if flags.start is not None:
        request.sequence_start = flags.start
    if flags.end is not None:
        request.sequence_end = flags.end

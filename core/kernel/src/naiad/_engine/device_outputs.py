"""Outputs that lie on a device: they stay there for requests that take them there, and else come to the host."""

from collections.abc import Collection, Sequence

import numpy as np

from naiad.errors import NaiadError
from naiad.types import Request, Response
from naiad_tensors.devices import HOST, Device, DeviceTensor


def settle(output: str, tensor: DeviceTensor, requests: Sequence[Request]) -> DeviceTensor | np.ndarray:
    """The tensor where it is, if any of the requests takes it there and it has no gaps; else in host memory.

    If one of them wants it in host memory, it is brought there now, for all of the batch at once, on the thread of the
    instance: nobody else waits for that.
    """
    wishes = [_wish(request, output) for request in requests]
    if not (tensor.is_contiguous and any(tensor.device in wish for wish in wishes)):
        return tensor.array
    if any(HOST in wish or tensor.device not in wish for wish in wishes):
        _ = tensor.array
    return tensor


def bring_to_host(
    outputs: Sequence[str], requests: Sequence[Request], outcomes: Sequence[Response | NaiadError | None]
) -> None:
    """Give the requests that do not take these outputs where they are what came to the host with the batch."""
    for request, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, Response):
            for tensor in [outcome.outputs[name] for name in outputs if name in outcome.outputs]:
                payload = tensor.payload
                if isinstance(payload, DeviceTensor) and payload.device not in _wish(request, tensor.name):
                    tensor.payload = payload.array


def _wish(request: Request, output: str) -> Collection[Device]:
    """The devices where a request takes that output."""
    return () if request.on_device is None else request.on_device.get(output, ())

"""Devices: where the tensors of an execution are, in host memory or on a GPU."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from naiad.backend import Batch, Placement
from naiad.errors import UnsupportedError
from naiad_tensors import devices
from naiad_torch.datatypes import array_of, tensor_of
from naiad_torch.gpu import Gpu, Pinned
from naiad_torch.runtime import runtime


class Device(Protocol):
    """Brings tensors to where the model computes, and its results back.

    `isolates`: the program may write to its inputs or keep its results, so inputs and outputs are copied.
    """

    name: str
    isolates: bool

    @property
    def input_devices(self) -> Collection[devices.Device]:
        """The devices of `naiad_tensors.devices` whose tensors are taken without a copy."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """The context in which everything else is done."""
        ...

    def bring(self, batch: Batch, name: str, is_bf16: bool) -> Any:
        """The batch's input of that name as a `torch.Tensor` on the device."""
        ...

    def fetch(self, batch: Batch, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs of the batch: arrays, or what may stay on the device; they are whole when this returns."""
        ...


def device_of(
    placement: Placement, pinned: Pinned, copies_outputs: bool = False, buffers: Collection[str] = ()
) -> Device:
    """The device of an instance. Raises UnsupportedError for a GPU that PyTorch does not have.

    `pinned` says which copies go through page-locked memory, `copies_outputs` that its program writes its
    next results to where the last ones are. The program may write to the arrays of the inputs `buffers`.
    """
    if placement.kind != "GPU":
        return Host("" if placement.kind == "MODEL" else "cpu", buffers)
    cuda = runtime().cuda
    if not cuda.is_available() or placement.device >= cuda.device_count():
        raise UnsupportedError(
            f"instance '{placement.name}' needs GPU {placement.device}, and this PyTorch ({runtime().__version__}) has "
            f"{cuda.device_count()}; install a build of torch for CUDA and the driver of the GPU, or use KIND_CPU"
        )
    return Gpu(placement.device, copies_outputs, pinned)


class Host:
    """Host memory: tensors are passed on as they are, also to a model that chooses its own device (`name` "")."""

    input_devices: Collection[devices.Device] = ()

    def __init__(self, name: str, buffers: Collection[str]) -> None:
        self.name = name
        self.isolates = False
        self._buffers = buffers

    def active(self) -> AbstractContextManager[None]:
        """Nothing to choose."""
        return nullcontext()

    def bring(self, batch: Batch, name: str, is_bf16: bool) -> Any:
        """A tensor over the memory of the request itself, or of the joined batch."""
        array = batch.input(name)
        if self.isolates:  # others may read a request's array: a client in this process, other steps of an ensemble
            is_own = len(batch.requests) > 1 or name in self._buffers
            array = array if is_own and array.flags.writeable else np.array(array, order="C")
        return tensor_of(array, is_bf16)

    def fetch(self, batch: Batch, values: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays over the memory of host tensors, and host copies of tensors on a device."""
        outputs = {name: array_of(value.cpu()) for name, value in values.items()}  # itself where it is there already
        if self.isolates:
            outputs = {name: array.copy() for name, array in outputs.items()}
        return outputs

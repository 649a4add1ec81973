"""Where tensors are while a model computes: in host memory, or on a GPU with a stream of the instance's own."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np

from naiad.backend import Batch, Placement
from naiad.errors import UnsupportedError
from naiad_torch.datatypes import array_of, tensor_of
from naiad_torch.runtime import runtime


class Device(Protocol):
    """Brings tensors to where the model computes, and its results back."""

    name: str

    def active(self) -> AbstractContextManager[None]:
        """The context in which everything else is done."""
        ...

    def bring(self, batch: Batch, name: str, is_bf16: bool) -> Any:
        """The batch's input of that name as a `torch.Tensor` on the device."""
        ...

    def fetch(self, values: Sequence[Any]) -> list[np.ndarray]:
        """The arrays of these tensors; they are whole when this returns."""
        ...


def device_of(placement: Placement) -> Device:
    """The device of an instance. Raises UnsupportedError for a GPU that PyTorch does not have."""
    if placement.kind != "GPU":
        return Host("" if placement.kind == "MODEL" else "cpu")
    cuda = runtime().cuda
    if not cuda.is_available() or placement.device >= cuda.device_count():
        raise UnsupportedError(
            f"instance '{placement.name}' wants GPU {placement.device}, and this PyTorch ({runtime().__version__}) has "
            f"{cuda.device_count()}; install a build of torch for CUDA and the driver of the GPU, or use KIND_CPU"
        )
    return Gpu(placement.device)


class Host:
    """Host memory; tensors are handed on as they are. A model that places itself (`name` "") takes them there too."""

    def __init__(self, name: str) -> None:
        self.name = name

    def active(self) -> AbstractContextManager[None]:
        """Nothing to choose."""
        return nullcontext()

    def bring(self, batch: Batch, name: str, is_bf16: bool) -> Any:
        """A tensor over the memory of the request itself, or of the joined batch."""
        return tensor_of(batch.input(name), is_bf16)

    def fetch(self, values: Sequence[Any]) -> list[np.ndarray]:
        """The arrays over the memory of the tensors; copies of those that a model has left on a device."""
        return [array_of(value if value.device.type == "cpu" else value.cpu()) for value in values]


class Gpu:
    """A GPU, through a stream of its own; what crosses the bus goes through pinned memory and waits for nobody else."""

    def __init__(self, index: int) -> None:
        self.name = f"cuda:{index}"
        self._device = runtime().device(self.name)
        self._stream = runtime().cuda.Stream(self._device)

    @contextmanager
    def active(self) -> Iterator[None]:
        """The instance's stream is the current one."""
        with runtime().cuda.stream(self._stream):
            yield

    def bring(self, batch: Batch, name: str, is_bf16: bool) -> Any:
        """The input itself where it is on the GPU already, else a copy through pinned memory."""
        resident = self._resident(batch, name)
        if resident is not None:
            return resident
        host = tensor_of(batch.input(name), is_bf16)
        staged = runtime().empty(host.shape, dtype=host.dtype, pin_memory=True)
        staged.copy_(host)
        return staged.to(self._device, non_blocking=True)

    def fetch(self, values: Sequence[Any]) -> list[np.ndarray]:
        """Copies in pinned memory."""
        torch = runtime()
        staged = [torch.empty(value.shape, dtype=value.dtype, pin_memory=True) for value in values]
        for host, value in zip(staged, values, strict=True):
            host.copy_(value, non_blocking=True)
        self._stream.synchronize()
        return [array_of(host) for host in staged]

    def _resident(self, batch: Batch, name: str) -> Any:
        """The input where all of it is on this GPU already, else None."""
        if batch.layout is not None and batch.layout.covers(name):
            return None
        payloads = [request.inputs[name].payload for request in batch.requests]
        torch = runtime()
        place = (2, self._device.index)
        if any(isinstance(each, np.ndarray) or tuple(map(int, each.__dlpack_device__())) != place for each in payloads):
            return None
        tensors = [torch.from_dlpack(each) for each in payloads]
        return tensors[0] if len(tensors) == 1 else torch.cat(tensors)

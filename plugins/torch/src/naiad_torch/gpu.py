"""GPU execution: a stream for each instance, pinned staging memory, and tensors that stay on the device."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from naiad.backend import Batch
from naiad_config import ModelConfig
from naiad_tensors.devices import HOST, device_of, gpu
from naiad_torch.datatypes import array_of
from naiad_torch.runtime import runtime


class Pinned(NamedTuple):
    """Which copies go through page-locked memory: those of inputs, and those of outputs."""

    inputs: bool
    outputs: bool


_BOTH = Pinned(inputs=True, outputs=True)


def pinned_of(config: ModelConfig) -> Pinned:
    """What `optimization` says of it: both, unless it is switched off."""
    policy = config.optimization
    buffers = (None, None) if policy is None else (policy.input_pinned_memory, policy.output_pinned_memory)
    return Pinned(*(each is None or each.enable for each in buffers))


class Gpu:
    """A GPU, through a stream of its own; copies wait for no other work.

    `copies_outputs` says that the program writes its next results to where these are.
    """

    def __init__(self, index: int, copies_outputs: bool = False, pinned: Pinned = _BOTH) -> None:
        torch = runtime()
        self.name = f"cuda:{index}"
        self.input_devices = (gpu(index),)
        self._device = torch.device(self.name)
        self._stream = torch.cuda.Stream(self._device)
        self._staging = Staging(self._device, pinned)
        self._copies_outputs = copies_outputs
        self.isolates = False

    @contextmanager
    def active(self) -> Iterator[None]:
        """The instance's stream is the current one; what fails leaves nothing behind that still reads inputs."""
        with runtime().cuda.stream(self._stream):
            try:
                yield
            except BaseException:
                with suppress(RuntimeError):  # the error of the GPU has been raised already
                    self._stream.synchronize()
                raise

    def bring(self, batch: Batch, name: str, is_bf16: bool) -> Any:
        """The input itself where all of it is on this GPU already, else a copy through pinned memory."""
        torch = runtime()
        resident = batch.resident(name, self.input_devices)
        if resident is None:
            return self._staging.to_device(arrays_of(batch, name), is_bf16)
        tensors = [torch.from_dlpack(each) for each in resident]
        if len(tensors) > 1:
            return torch.cat(tensors)
        return tensors[0].clone() if self.isolates else tensors[0]

    def fetch(self, batch: Batch, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs that may stay on the device as tensors, the others as arrays; all complete on return."""
        (here,) = self.input_devices
        computed = runtime().cuda.Event()
        computed.record(self._stream)
        outputs: dict[str, Any] = {}
        staged: dict[str, Any] = {}
        for name, value in values.items():
            if value.device == self._device and batch.may_stay(name, here):
                plain = laid_out(value)
                outputs[name] = Resident(
                    plain.clone() if self._copies_outputs or self.isolates else plain, self._staging
                )
            else:
                outputs[name] = staged[name] = self._staging.begin_to_host(value)
        computed.synchronize()
        batch.mark_infer_done()  # the instance's own mark was when the work was queued
        self._stream.synchronize()
        outputs.update((name, array_of(tensor)) for name, tensor in staged.items())
        return outputs


class Staging:
    """Copies between host memory and a device, by way of pinned memory, which PyTorch keeps for the next copy.

    They run on the current stream. What is not `pinned` goes through ordinary memory, as on machines without a GPU.
    """

    def __init__(self, device: Any, pinned: Pinned) -> None:
        self._device = device
        self._pinned = pinned

    def to_device(self, arrays: Sequence[np.ndarray], is_bf16: bool) -> Any:
        """One tensor of these arrays, joined along dimension 0; the arrays are no longer read on return."""
        torch = runtime()
        first = arrays[0]
        shape = first.shape if len(arrays) == 1 else (sum(len(array) for array in arrays), *first.shape[1:])
        staged = torch.empty(
            shape, dtype=torch.from_numpy(np.empty(0, first.dtype)).dtype, pin_memory=self._pinned.inputs
        )
        if len(arrays) == 1:
            np.copyto(staged.numpy(), first)
        else:
            np.concatenate(arrays, out=staged.numpy())
        tensor = staged.to(self._device, non_blocking=True)
        return tensor.view(torch.bfloat16) if is_bf16 else tensor

    def begin_to_host(self, value: Any) -> Any:
        """A host copy of a tensor, complete when the current stream is synchronised; a host tensor as it is."""
        if value.device.type == "cpu":
            return value
        staged = self._empty_as(value)
        staged.copy_(value, non_blocking=True)
        return staged

    def to_host(self, value: Any) -> Any:
        """A copy of a whole tensor in host memory."""
        with runtime().cuda.device_of(value):
            return self._empty_as(value).copy_(value)

    def _empty_as(self, value: Any) -> Any:
        return runtime().empty(value.shape, dtype=value.dtype, pin_memory=self._pinned.outputs)


class Resident:
    """A complete tensor on its GPU, usable from any thread: PyTorch exports it only with that GPU current."""

    __slots__ = ("_staging", "_tensor")

    def __init__(self, tensor: Any, staging: Staging) -> None:
        self._tensor = tensor
        self._staging = staging

    def __dlpack__(self, *, stream: Any = -1, **options: Any) -> Any:
        if options.get("dl_device") == HOST:
            return self._staging.to_host(self._tensor).__dlpack__()
        with runtime().cuda.device_of(self._tensor):
            return self._tensor.__dlpack__(stream=stream, **options)  # PyTorch 2.6 knows no other options

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_of(self._tensor)


def arrays_of(batch: Batch, name: str) -> Sequence[np.ndarray]:
    """The input in host memory, not joined yet where it is rows of several requests."""
    if len(batch.requests) == 1 or (batch.layout is not None and batch.layout.covers(name)):
        return [batch.input(name)]
    return [request.inputs[name].array for request in batch.requests]


def laid_out(tensor: Any) -> Any:
    """The tensor as others can read it: its elements in C order, and nothing left to be computed or differentiated."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor.contiguous()

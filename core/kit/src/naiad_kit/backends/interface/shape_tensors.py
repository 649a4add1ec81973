"""Shape tensors of batching models: the first element is the batch size, which configurations leave out. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from naiad_config import ModelConfig
from naiad_kit.backends.interface.tensors import Interface, ModelTensor
from naiad_kit.backends.interface.written import Entry


def with_shapes_as_rows(interface: Interface, config: ModelConfig) -> Interface:
    """The interface of a model in which the shape tensors of that configuration stand as rows of what a client sends.

    So a tensor of shape `[3]`, the batch size and two values, is `[-1,2]` here, and compares as all others do. One
    that has no room for the batch size stays as it is, and so does everything where the configuration does not batch.
    """
    if config.max_batch_size <= 0:
        return interface
    entries: Sequence[Entry] = (*config.input, *config.output)
    names = {entry.name for entry in entries if entry.is_shape_tensor}
    if not names:
        return interface
    inputs, outputs = (
        tuple(_as_rows(tensor) if tensor.name in names else tensor for tensor in tensors)
        for tensors in (interface.inputs, interface.outputs)
    )
    return Interface(inputs, outputs)


def _as_rows(tensor: ModelTensor) -> ModelTensor:
    if len(tensor.shape) != 1 or tensor.shape[0] in (0, 1):
        return tensor
    count = tensor.shape[0]
    return replace(tensor, shape=(-1, count - 1 if count > 0 else -1))

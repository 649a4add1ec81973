"""The samples that `model_warmup` of a configuration describes."""

from collections.abc import Sequence
from math import prod

import numpy as np

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_config import ModelWarmup, WarmupInput
from naiad_kit.tensor_files import read_tensor_file
from naiad_tensors.datatypes import tensor_type, wire_name
from naiad_tensors.tensors import Tensor
from naiad_warmup.samples import WarmupSample

_SEED = 2024
"""Random warmup data is the same at every load, so that a failing warmup fails again."""


def configured_samples(context: ModelContext) -> Sequence[WarmupSample]:
    """A sample with `batch_size` requests of batch 1 for each `model_warmup`; one with batch size 0 is skipped."""
    return [_sample(context, warmup) for warmup in context.config.model_warmup if warmup.batch_size > 0]


def _sample(context: ModelContext, warmup: ModelWarmup) -> WarmupSample:
    batching = context.config.max_batch_size > 0
    whole = {tensor.name for tensor in context.config.input if tensor.is_shape_tensor}
    inputs = {
        name: _checked_tensor(context, warmup, name, data, batching and name not in whole)
        for name, data in warmup.inputs.items()
    }
    request = Request(context.config.name, inputs, context.version)
    return WarmupSample(warmup.name, [request] * warmup.batch_size, max(1, warmup.count))


def _checked_tensor(context: ModelContext, warmup: ModelWarmup, name: str, data: WarmupInput, batching: bool) -> Tensor:
    try:
        return _tensor(context, warmup, name, data, batching)
    except (MemoryError, OverflowError, ValueError) as error:  # numpy has three errors for what is too large
        raise InvalidArgumentError(
            f"warmup sample '{warmup.name}' of model '{context.config.name}' cannot have input '{name}' with the dims "
            f"{list(data.dims)}: {error or 'there is not so much memory'}; give it dims that fit into memory"
        ) from error


def _tensor(context: ModelContext, warmup: ModelWarmup, name: str, data: WarmupInput, batching: bool) -> Tensor:
    kind = tensor_type(wire_name(data.data_type))
    shape = (1, *data.dims) if batching else tuple(data.dims)
    if data.input_data_file is not None:
        array = read_tensor_file(context.model_directory / "warmup" / data.input_data_file, "warmup", kind, shape)
    elif data.random_data is not None and kind.itemsize:
        random = np.frombuffer(np.random.default_rng(_SEED).bytes(prod(shape) * kind.itemsize), np.uint8)
        array = (random & 1 if kind.wire == "BOOL" else random).view(kind.dtype).reshape(shape)
    elif data.zero_data is None and data.random_data is None:
        raise InvalidArgumentError(
            f"warmup sample '{warmup.name}' of model '{context.config.name}' gives no data for input '{name}': "
            "set one of zero_data, random_data and input_data_file"
        )
    elif kind.itemsize:
        array = np.zeros(shape, kind.dtype)
    else:
        array = np.full(shape, b"", dtype=object)
    return Tensor(name, kind.wire, shape, array)

"""Auto-completion from a model file: batching, inputs, outputs, dynamic batching. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from naiad.errors import ConfigError, Problem
from naiad_config import DataType, ModelConfig, ModelDynamicBatching, ModelInput, ModelOutput, ModelTensorReshape
from naiad_kit.backends.interface.tensors import Interface, ModelTensor, shape_text
from naiad_kit.backends.interface.written import Entry, model_dims, reserved_inputs, scattered_outputs

_Entry = TypeVar("_Entry", ModelInput, ModelOutput)


def completed(config: ModelConfig, interface: Interface, default_batch_size: int) -> ModelConfig:
    """The configuration with what it leaves open; one whose inputs and outputs are all written out stays as it is.

    Raises ConfigError when it asks for batching and the model cannot be batched, and for tensors whose dims are not
    written and whose rank the model does not tell.
    """
    if is_complete(config):
        return config
    max_batch_size = _max_batch_size(config, interface, default_batch_size)
    batching = max_batch_size > 0
    inputs = [_flat(entry) for entry in _inputs(config, interface)]
    outputs = [_like_source(entry, config) for entry in _outputs(config, interface)]
    unknown = [*_without_rank(config, inputs, interface.inputs), *_without_rank(config, outputs, interface.outputs)]
    if unknown:
        raise ConfigError(unknown)
    completed_config = replace(
        config,
        max_batch_size=max_batch_size,
        input=tuple(_filled(entry, interface.inputs, batching) for entry in inputs),
        output=tuple(_filled(entry, interface.outputs, batching) for entry in outputs),
    )
    scheduled = config.dynamic_batching or config.sequence_batching or config.ensemble_scheduling
    if max_batch_size > 1 and scheduled is None:
        return replace(completed_config, dynamic_batching=ModelDynamicBatching())
    return completed_config


def is_complete(config: ModelConfig) -> bool:
    """Whether all inputs and outputs are written out, so that there is nothing to fill."""
    entries: Sequence[Entry] = (*config.input, *config.output)
    return bool(config.input) and bool(config.output) and all(_is_whole(entry) for entry in entries)


def _is_whole(entry: Entry) -> bool:
    return bool(entry.name) and entry.data_type is not DataType.TYPE_INVALID and bool(entry.dims)


def _max_batch_size(config: ModelConfig, interface: Interface, default: int) -> int:
    if config.max_batch_size > 0 and (interface.fixed or not interface.inputs):
        raise ConfigError([_not_batchable(config, interface)])
    if config.max_batch_size != 0 or not interface.batches or _writes_whole_shapes(config, interface):
        return config.max_batch_size
    return default


def _not_batchable(config: ModelConfig, interface: Interface) -> Problem:
    where = ", ".join(f"'{tensor.name}' has shape {shape_text(tensor.shape)}" for tensor in interface.fixed)
    return Problem(
        f"autofill failed for model '{config.name}': model does not support batching while non-zero max_batch_size is "
        f"specified: {where or 'it has no inputs'}",
        "max_batch_size",
        hint="set max_batch_size to 0, or export the model with a variable first dim in every input and output",
    )


def _writes_whole_shapes(config: ModelConfig, interface: Interface) -> bool:
    """Whether some dims that are written already have the rank of the model's shape: their author does not batch."""
    ranks = {tensor.name: len(tensor.shape) for tensor in (*interface.inputs, *interface.outputs)}
    scattered = scattered_outputs(config)
    entries: list[Entry] = [entry for entry in config.input if not entry.allow_ragged_batch]
    entries += [entry for entry in config.output if entry.name not in scattered]
    return any(len(model_dims(entry)) == ranks.get(entry.name) for entry in entries if entry.dims)


def _inputs(config: ModelConfig, interface: Interface) -> list[ModelInput]:
    """The inputs that are written, and behind them what the model needs besides and the server does not fill."""
    reserved = reserved_inputs(config)
    required = [tensor.name for tensor in interface.inputs if not tensor.optional and tensor.name not in reserved]
    entries = _named(config.input, required)
    written = {entry.name for entry in entries}
    return entries + [ModelInput(name=name) for name in required if name not in written]


def _outputs(config: ModelConfig, interface: Interface) -> list[ModelOutput]:
    """The outputs that are written; without any, all that are tensors and no state."""
    if config.output:
        return _named(config.output, [tensor.name for tensor in interface.outputs])
    states = config.sequence_batching.state if config.sequence_batching is not None else ()
    kept = {state.output_name for state in states}
    offered = (tensor for tensor in interface.outputs if tensor.data_type is not None and tensor.name not in kept)
    return [ModelOutput(name=tensor.name) for tensor in offered]


def _named(entries: Sequence[_Entry], names: Sequence[str]) -> list[_Entry]:
    """The entries, those without a name named after the model's remaining tensors in order."""
    taken = {entry.name for entry in entries}
    free = (name for name in names if name not in taken)
    return [entry if entry.name else replace(entry, name=next(free, "")) for entry in entries]


def _flat(entry: ModelInput) -> ModelInput:
    """A ragged input without dims gets one that is variable: the model's own shape says nothing of a request's."""
    return replace(entry, dims=(-1,)) if entry.allow_ragged_batch and not entry.dims else entry


def _like_source(entry: ModelOutput, config: ModelConfig) -> ModelOutput:
    """A scattered output without dims gets those of the input that gives it its shape."""
    sources = [each.source_input for each in config.batch_output if entry.name in each.target_name]
    if entry.dims or not sources:
        return entry
    dims = [tensor.dims for tensor in config.input if tensor.name in sources[0]]
    return replace(entry, dims=(dims and dims[0]) or (-1,))


def _without_rank(config: ModelConfig, entries: Sequence[Entry], tensors: Sequence[ModelTensor]) -> list[Problem]:
    unranked = {tensor.name for tensor in tensors if tensor.unranked}
    return [
        Problem(
            f"autofill failed for model '{config.name}': the model declares no rank for '{entry.name}', so that its "
            "dims cannot be filled",
            "input" if isinstance(entry, ModelInput) else "output",
            hint=f"write the {'input' if isinstance(entry, ModelInput) else 'output'} with its dims",
        )
        for entry in entries
        if entry.name in unranked and not entry.dims
    ]


def _filled(entry: _Entry, tensors: Sequence[ModelTensor], batching: bool) -> _Entry:
    """The entry with the datatype and dims of the model's tensor of its name; as it is when there is no such tensor."""
    tensor = next((tensor for tensor in tensors if tensor.name == entry.name), None)
    if tensor is None:
        return entry
    if entry.data_type is DataType.TYPE_INVALID and tensor.data_type is not None:
        entry = replace(entry, data_type=tensor.data_type)
    if entry.dims:
        return entry
    dims = tensor.shape[1:] if batching else tensor.shape
    if dims:
        return replace(entry, dims=dims)
    return replace(entry, dims=(1,), reshape=entry.reshape or ModelTensorReshape())

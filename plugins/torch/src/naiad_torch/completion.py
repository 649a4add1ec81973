"""Filling what a configuration leaves open from an exported program, which tells everything about its tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from naiad.config import ModelConfig, ModelDynamicBatching, ModelInput, ModelOutput, ModelTensorReshape
from naiad_torch.datatypes import datatype_of
from naiad_torch.package import ExportedArtefact

_UNLIMITED = 1 << 31


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor of an exported program: its names, its `torch.dtype`, its shape with -1 for what varies.

    `rows` is how many rows it may have at most, 0 when its first dim does not vary.
    """

    name: str
    dtype: Any
    shape: tuple[int, ...]
    rows: int


def completed(config: ModelConfig, artefact: ExportedArtefact, default_batch_size: int) -> ModelConfig:
    """The configuration with batching, inputs and outputs, where it does not say; one that says all stays as it is."""
    if config.input and config.output:
        return config
    inputs, outputs = describe(artefact)
    size = _max_batch_size(config, (*inputs, *outputs), default_batch_size)
    found = replace(
        config,
        max_batch_size=size,
        input=config.input or tuple(_input(each, size > 0) for each in inputs),
        output=config.output or tuple(_output(each, size > 0) for each in outputs),
    )
    scheduled = config.dynamic_batching or config.sequence_batching or config.ensemble_scheduling
    return replace(found, dynamic_batching=ModelDynamicBatching()) if size > 1 and scheduled is None else found


def describe(artefact: ExportedArtefact) -> tuple[list[Described], list[Described]]:
    """The tensors that the program takes and gives; a result is called `OUTPUT__<place>`."""
    program = artefact.program
    nodes = {node.name: node for node in program.graph.nodes}
    taken = [_described(name, nodes[name], program) for name in artefact.argument_names]
    results = program.graph_signature.user_outputs
    given = [_described(f"OUTPUT__{place}", nodes[str(name)], program) for place, name in enumerate(results)]
    return taken, given


def _described(name: str, node: Any, program: Any) -> Described:
    value = node.meta["val"]
    shape = tuple(size if isinstance(size, int) else -1 for size in value.shape)
    return Described(name, value.dtype, shape, _rows(value.shape[0], program) if shape and shape[0] == -1 else 0)


def _rows(size: Any, program: Any) -> int:
    """The largest value of a symbolic size."""
    for symbol, limits in program.range_constraints.items():
        if str(symbol) == str(size):
            upper = limits.upper
            return int(upper) if str(upper).isdigit() else _UNLIMITED
    return _UNLIMITED


def _max_batch_size(config: ModelConfig, tensors: Sequence[Described], default: int) -> int:
    batches = bool(tensors) and all(each.rows for each in tensors)
    if not batches or config.max_batch_size:
        return config.max_batch_size
    return min(default, *(each.rows for each in tensors))


def _input(tensor: Described, batching: bool) -> ModelInput:
    dims, reshape = _dims(tensor, batching)
    return ModelInput(name=tensor.name, data_type=datatype_of(tensor.dtype), dims=dims, reshape=reshape)


def _output(tensor: Described, batching: bool) -> ModelOutput:
    dims, reshape = _dims(tensor, batching)
    return ModelOutput(name=tensor.name, data_type=datatype_of(tensor.dtype), dims=dims, reshape=reshape)


def _dims(tensor: Described, batching: bool) -> tuple[tuple[int, ...], ModelTensorReshape | None]:
    dims = tensor.shape[1:] if batching else tensor.shape
    return (dims, None) if dims else ((1,), ModelTensorReshape())

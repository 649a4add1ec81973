"""The interface of an engine as that of a configuration, and auto-completion from it. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from naiad.errors import ConfigError, Problem
from naiad_config import ModelConfig, ModelInput, ModelOutput
from naiad_kit.backends.interface import Interface, ModelTensor, completed
from naiad_tensorrt.description import LINEAR, EngineDescription, EngineTensor, Shape

_Entry = TypeVar("_Entry", ModelInput, ModelOutput)


def interface_of(description: EngineDescription, batching: bool) -> Interface:
    """The interface of an engine, for a configuration that batches or not.

    The shape tensor of a model that batches begins with the batch size, which a configuration leaves out as it leaves
    out the batch dimension: it stands here as rows of what follows.
    """
    return Interface(
        tuple(_model_tensor(tensor, batching) for tensor in description.inputs),
        tuple(_model_tensor(tensor, batching) for tensor in description.outputs),
    )


def greatest_batch(config: ModelConfig, description: EngineDescription) -> int:
    """The largest batch that an instance of every group takes on one of its profiles.

    Only inputs count that hold one row for each item of a batch; without any, the configuration's size is taken.
    """
    whole = {tensor.name for tensor in config.input if tensor.allow_ragged_batch}
    whole |= {name for batch_input in config.batch_input for name in batch_input.target_name}
    rows = [tensor.name for tensor in description.inputs if tensor.name not in whole]
    if description.inputs and not rows:
        return config.max_batch_size
    groups = [[int(text) for text in group.profile if text.isdigit()] or [0] for group in config.instance_group]
    return min(
        max((_greatest(description, index, rows) for index in profiles), default=0) for profiles in groups or [[0]]
    )


def completed_config(config: ModelConfig, description: EngineDescription) -> ModelConfig:
    """The configuration with what it leaves open; a model that can be batched gets the largest batch of its profiles.

    Raises ConfigError when it asks for batching that the engine does not have, or for larger batches.
    """
    interface = interface_of(description, batching=True)
    most = greatest_batch(config, description)
    done = completed(config, interface, most)
    problem = too_large(done, most)
    if problem is not None:
        raise ConfigError([replace(problem, message=f"autofill failed for model '{config.name}': {problem.message}")])
    tensors = {tensor.name: tensor for tensor in description.tensors}
    batching = done.max_batch_size > 0
    return replace(
        done,
        input=tuple(_flagged(entry, tensors.get(entry.name), batching) for entry in done.input),
        output=tuple(_flagged(entry, tensors.get(entry.name), batching) for entry in done.output),
    )


def as_served(config: ModelConfig, description: EngineDescription) -> EngineDescription:
    """The engine, in which tensors that clients lay out themselves (`is_non_linear_format_io`) count as linear.

    They keep their components, which shapes must have multiples of.
    """
    entries: Sequence[ModelInput | ModelOutput] = (*config.input, *config.output)
    raw = {entry.name for entry in entries if entry.is_non_linear_format_io}
    tensors = (replace(each, format=LINEAR) if each.name in raw else each for each in description.tensors)
    return replace(description, tensors=tuple(tensors))


def too_large(config: ModelConfig, most: int) -> Problem | None:
    """What is wrong with `max_batch_size` for an engine that takes batches up to `most`."""
    if config.max_batch_size <= most:
        return None
    return Problem(
        f"configuration specified max-batch {config.max_batch_size} but TensorRT engine only supports max-batch {most}",
        "max_batch_size",
        hint="lower it, or name a profile that takes larger batches in 'profile' of the instance group",
    )


def _model_tensor(tensor: EngineTensor, batching: bool) -> ModelTensor:
    hint = f"TensorRT's {tensor.type} is of the inside of engines; build it with a cast to FP16 or FP32 at its border"
    shape = _as_rows(tensor.dims) if batching and tensor.is_shape_tensor else tensor.dims
    return ModelTensor(tensor.name, tensor.type, tensor.datatype, shape, hint="" if tensor.datatype else hint)


def _greatest(description: EngineDescription, index: int, rows: Sequence[str]) -> int:
    """The largest batch of a profile; 0 where there is no such profile, or nothing has rows."""
    if index >= len(description.profiles):
        return 0
    profile = description.profiles[index]
    ranges = [(profile.values if name in profile.values else profile.shapes)[name] for name in rows]
    return min((most[0] for _, _, most in ranges if most), default=0)


def _as_rows(dims: Shape) -> Shape:
    """The dims of a shape tensor in a configuration: one row per request, without the batch size."""
    return (-1, dims[0] - 1) if len(dims) == 1 and dims[0] > 1 else dims


def _flagged(entry: _Entry, tensor: EngineTensor | None, batching: bool) -> _Entry:
    if tensor is None:
        return entry
    if tensor.is_shape_tensor:
        entry = replace(entry, is_shape_tensor=True)
        if not batching and tuple(entry.dims) == _as_rows(tensor.dims):
            entry = replace(entry, dims=tensor.dims)
    return entry

"""Validation of a configuration against an engine: reports all contradictions. Pure."""

from collections.abc import Iterator

from naiad.errors import Problem, UnsupportedError
from naiad_config import ModelConfig, ModelInput, ModelOutput
from naiad_kit.backends.interface import mismatches, shape_text
from naiad_tensorrt.description import EngineDescription, EngineTensor
from naiad_tensorrt.execution.layout import memory_shape
from naiad_tensorrt.interface import greatest_batch, interface_of, too_large


def problems_of(config: ModelConfig, description: EngineDescription) -> tuple[Problem, ...]:
    """Everything in which the configuration and the engine contradict each other; () when it can be served."""
    return tuple(_problems(config, description))


def _problems(config: ModelConfig, description: EngineDescription) -> Iterator[Problem]:
    problems = mismatches(config, interface_of(description, config.max_batch_size > 0))
    yield from problems
    yield from _unknown_profiles(config, description)
    large = too_large(config, greatest_batch(config, description))
    if large is not None and not problems:
        yield large
    tensors = {tensor.name: tensor for tensor in description.tensors}
    entries: list[tuple[str, str, ModelInput | ModelOutput]] = [
        *((f"input[{index}]", "input", entry) for index, entry in enumerate(config.input)),
        *((f"output[{index}]", "output", entry) for index, entry in enumerate(config.output)),
    ]
    for path, kind, entry in entries:
        tensor = tensors.pop(entry.name, None)
        if tensor is not None:
            subject = f"model '{config.name}', {kind} '{entry.name}'"
            yield from _shape_tensor_problem(config, entry, tensor, f"{path}.is_shape_tensor", subject)
            yield from _format_problem(entry, tensor, f"{path}.is_non_linear_format_io", subject)
    for tensor in tensors.values():
        yield from _layout_problem(tensor, "input" if tensor.is_input else "output", f"model '{config.name}'")


def _unknown_profiles(config: ModelConfig, description: EngineDescription) -> Iterator[Problem]:
    count = len(description.profiles)
    for index, group in enumerate(config.instance_group):
        for position, text in enumerate(group.profile):
            if text.isdigit() and int(text) >= count:
                yield Problem(
                    f"instance group '{group.name}' of model '{config.name}' has the invalid profile {text}: the "
                    f"engine has {count}",
                    f"instance_group[{index}].profile[{position}]",
                    hint="profiles count from 0",
                )


def _shape_tensor_problem(
    config: ModelConfig, entry: ModelInput | ModelOutput, tensor: EngineTensor, path: str, subject: str
) -> Iterator[Problem]:
    if entry.is_shape_tensor and not tensor.is_shape_tensor:
        yield Problem(
            f"{subject} is a shape tensor in the configuration, and an ordinary one in the engine",
            path,
            hint="leave 'is_shape_tensor' out",
        )
    elif tensor.is_shape_tensor and not entry.is_shape_tensor and config.max_batch_size > 0:
        yield Problem(
            f"{subject} is a shape tensor in the engine, whose first value is the batch size, and the configuration "
            "does "
            "not say so",
            path,
            hint="add is_shape_tensor: true, with dims that leave the batch size out",
        )


def _format_problem(
    entry: ModelInput | ModelOutput, tensor: EngineTensor, path: str, subject: str
) -> Iterator[Problem]:
    if not entry.is_non_linear_format_io:
        yield from _layout_problem(tensor, path.partition(".")[0], subject.partition(",")[0])
        return
    if tensor.is_linear:
        yield Problem(
            f"{subject} has a linear format in the engine, and the configuration says that it has none",
            path,
            hint="leave 'is_non_linear_format_io' out",
        )
        return
    if len(entry.dims) != 3:
        yield Problem(
            f"{subject} has a non-linear format, which takes 3 dims, not {shape_text(entry.dims)}",
            path,
            hint="a batch dimension is not among them; or leave 'is_non_linear_format_io' out, and send elements in "
            "the order of the dims",
        )
    size = tensor.dims[tensor.vectorized_dim] if tensor.vectorized_dim >= 0 else -1
    if size > 0 and size % tensor.components:
        yield Problem(
            f"{subject} has the format {tensor.format}, which keeps {tensor.components} elements of dim "
            f"{tensor.vectorized_dim} together, and {size} of them: clients would have to fill it up",
            path,
            hint="leave 'is_non_linear_format_io' out, and the server does",
        )


def _layout_problem(tensor: EngineTensor, path: str, subject: str) -> Iterator[Problem]:
    """The problem of a tensor that the server cannot convert to the engine's format."""
    try:
        memory_shape(tensor, tuple(abs(dim) for dim in tensor.dims))
    except UnsupportedError as error:
        yield Problem(f"{subject}: {error}", path)

"""Rules for `batch_input` and `batch_output`, the tensors that describe a batch as a whole."""

from collections.abc import Iterator, Sequence

from naiad_config.errors import Problem
from naiad_config.mistakes import nearest
from naiad_config.model import ModelConfig
from naiad_config.paths import element
from naiad_config.tensors import DataType, ModelInput

_TYPES = (DataType.TYPE_INT32, DataType.TYPE_FP32)


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in the batch inputs and outputs themselves."""
    for index, batch_input in enumerate(config.batch_input):
        path = element("batch_input", index)
        if batch_input.data_type not in _TYPES:
            message = f"batch input data type must be TYPE_INT32 or TYPE_FP32, not {batch_input.data_type.name}"
            yield Problem(message, f"{path}.data_type")
        yield from _one_source(f"batch input kind '{batch_input.kind.name}'", batch_input.source_input, path)
        if not batch_input.target_name:
            yield Problem(f"batch input kind '{batch_input.kind.name}' has no target_name for {config.name}", path)
    yield from _taken_targets(config)
    seen: set[str] = set()
    for index, batch_output in enumerate(config.batch_output):
        path = element("batch_output", index)
        yield from _one_source(f"batch output kind '{batch_output.kind.name}'", batch_output.source_input, path)
        for position, name in enumerate(batch_output.target_name):
            if name in seen:
                message = f"target output name '{name}' can only be specified once for {config.name}"
                yield Problem(message, element(f"{path}.target_name", position))
            seen.add(name)


def unknown_names(config: ModelConfig) -> Iterator[Problem]:
    """Names of batch inputs and outputs that no input or output of the complete model has."""
    inputs = [tensor.name for tensor in config.input]
    outputs = [output.name for output in config.output]
    for index, tensor in enumerate(config.batch_input):
        yield from _unknown("source input", tensor.source_input, inputs, f"batch_input[{index}].source_input")
    for index, output in enumerate(config.batch_output):
        yield from _unknown("source input", output.source_input, inputs, f"batch_output[{index}].source_input")
        yield from _unknown("target output", output.target_name, outputs, f"batch_output[{index}].target_name")
        yield from _unlike_sources(config, index)


def _taken_targets(config: ModelConfig) -> Iterator[Problem]:
    """Clients do not send what the server makes, and it makes each tensor in one way."""
    seen = {tensor.name: "an input that clients send" for tensor in config.input if tensor.name}
    for index, tensor in enumerate(config.batch_input):
        for position, name in enumerate(tensor.target_name):
            path = element(f"batch_input[{index}].target_name", position)
            if name in seen:
                message = f"target input name '{name}' of {config.name} is {seen[name]} already"
                yield Problem(message, path, hint="give each batch input a name of its own in the model")
            seen[name] = "a batch input"


def _unlike_sources(config: ModelConfig, index: int) -> Iterator[Problem]:
    """The variable dims of a scattered output are those of its source at the same place."""
    batch_output = config.batch_output[index]
    source = next((tensor for tensor in config.input if tensor.name in batch_output.source_input[:1]), None)
    for position, name in enumerate(batch_output.target_name):
        output = next((output for output in config.output if output.name == name), None)
        if output is None or source is None:
            continue
        path = element(f"batch_output[{index}].target_name", position)
        if output.reshape is not None:
            message = f"target output '{name}' of {config.name} has a reshape, and its shape is that of its source"
            yield Problem(message, path, hint="remove the reshape")
        elif -1 in output.dims and len(output.dims) != len(_model_dims(source)):
            message = (
                f"target output '{name}' of {config.name} has dims {list(output.dims)}, whose variable dims cannot "
                f"follow from the dims {list(_model_dims(source))} of source input '{source.name}'"
            )
            yield Problem(message, path, hint="write as many dims for the output as the source input has")


def _model_dims(tensor: ModelInput) -> Sequence[int]:
    return tensor.dims if tensor.reshape is None else tensor.reshape.shape


def _one_source(what: str, sources: Sequence[str], path: str) -> Iterator[Problem]:
    if len(sources) != 1:
        yield Problem(f"{what} expects 1 source input, got {len(sources)}", f"{path}.source_input")


def _unknown(what: str, names: Sequence[str], known: Sequence[str], path: str) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean '{near}'?" if near else f"the model has {', '.join(known) or 'none'}"
            yield Problem(f"unknown {what} name '{name}'", element(path, index), hint=hint)

"""Rules for the samples that warm up a model."""

from collections.abc import Iterator

from naiad_config.errors import Problem
from naiad_config.mistakes import nearest
from naiad_config.model import ModelConfig, WarmupInput
from naiad_config.paths import element, entry
from naiad_config.sequence_tensors import extra_inputs
from naiad_config.tensors import DataType

MOST_REQUESTS = 2**20
"""The most requests of a sample over all of its runs: more of them is a typing mistake, and holds up every load."""

_SOURCES = ("zero_data", "random_data", "input_data_file")


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in the warmup samples themselves."""
    for index, sample in enumerate(config.model_warmup):
        requests = sample.batch_size * max(1, sample.count)
        if requests > MOST_REQUESTS:
            message = f"a warmup sample of {config.name} has {requests:,} requests, and the most is {MOST_REQUESTS:,}"
            hint = "they are 'batch_size' times 'count'; a few runs warm a model up"
            yield Problem(message, element("model_warmup", index), hint=hint)
    for _, name, data, path in _inputs(config):
        what = f"warmup input '{name}' of {config.name}"
        for index, dim in enumerate(data.dims):
            if dim < 1:
                hint = "a sample has a fixed shape, without the batch dimension"
                yield Problem(f"{what} has the dimension {dim}", element(f"{path}.dims", index), hint=hint)
        if data.data_type == DataType.TYPE_INVALID:
            yield Problem(f"{what} must specify 'data_type'", path)
        chosen = [key for key in _SOURCES if getattr(data, key) is not None]
        if len(chosen) != 1:
            reason = " and ".join(f"'{key}'" for key in chosen) or "none"
            message = f"{what} takes one of 'zero_data', 'random_data' and 'input_data_file', and has {reason}"
            yield Problem(message, path)


def unlike_inputs(config: ModelConfig) -> Iterator[Problem]:
    """Where the samples differ from the inputs of the complete model: other names, types or sizes, inputs left out."""
    types = {tensor.name: tensor.data_type for tensor in (*config.input, *extra_inputs(config))}
    known = {*types, *_made_by_the_server(config)}
    for _, name, tensor, path in _inputs(config):
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean '{near}'?" if near else f"the inputs are {', '.join(sorted(known)) or 'none'}"
            yield Problem(f"warmup input '{name}' is not an input of {config.name}", path, hint=hint)
        elif tensor.data_type not in (types.get(name, tensor.data_type), DataType.TYPE_INVALID):
            message = f"warmup input '{name}' is {tensor.data_type.name}, but the input of {config.name} is"
            yield Problem(f"{message} {types[name].name}", f"{path}.data_type")
    required = [tensor.name for tensor in config.input if not tensor.optional]
    for index, sample in enumerate(config.model_warmup):
        if 0 < config.max_batch_size < sample.batch_size:
            message = f"a warmup sample of {config.name} has batch_size {sample.batch_size}, and max_batch_size is"
            path = f"{element('model_warmup', index)}.batch_size"
            yield Problem(f"{message} {config.max_batch_size}", path, hint="a sample is one batch")
        absent = [name for name in required if name not in sample.inputs]
        if absent and sample.batch_size:
            message = f"warmup sample '{sample.name}' lacks the input {', '.join(absent)}"
            yield Problem(
                message, element("model_warmup", index), hint="a sample holds every input that is not optional"
            )


def _inputs(config: ModelConfig) -> Iterator[tuple[int, str, WarmupInput, str]]:
    """Every input of every sample, as index of the sample, name, input and path."""
    for index, sample in enumerate(config.model_warmup):
        for name, data in sample.inputs.items():
            yield index, name, data, entry(f"{element('model_warmup', index)}.inputs", name)


def _made_by_the_server(config: ModelConfig) -> set[str]:
    """Tensors that clients do not send: samples go past the scheduler that would add them."""
    batching = config.sequence_batching
    targets = {name for each in config.batch_input for name in each.target_name}
    if batching is None:
        return targets
    return targets | {each.name for each in batching.control_input} | {state.input_name for state in batching.state}

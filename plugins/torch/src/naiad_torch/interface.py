"""The interface of a package under the names of a configuration: auto-completion and validation."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from naiad.errors import Problem
from naiad_config import ModelConfig
from naiad_kit.backends.interface import Interface, ModelTensor, completed, mismatches
from naiad_torch.described import most_rows
from naiad_torch.naming import Named, indices_of
from naiad_torch.plan import named_inputs, named_outputs
from naiad_torch.program import Artefact


def completed_from(config: ModelConfig, artefact: Artefact, default_batch_size: int) -> ModelConfig:
    """The configuration with batching, inputs and outputs, where it does not say.

    Raises ConfigError when it asks for batching and the model cannot be batched.
    """
    interface = _interface_of(config, artefact)
    limit = most_rows((*artefact.takes, *artefact.gives))
    return completed(config, interface, min(default_batch_size, limit))


def contradictions(config: ModelConfig, artefact: Artefact, file: str) -> list[Problem]:
    """Everything in which a complete configuration and the package contradict each other, if it describes its tensors.

    The dims of an output may be variable where those of the model are not: the kernel looks at each output anyway.
    """
    if not artefact.takes:
        return []
    limit = most_rows((*artefact.takes, *artefact.gives))
    problems = [*mismatches(config, _widened(config, _interface_of(config, artefact)))]
    if config.max_batch_size > limit:
        message = f"max_batch_size is {config.max_batch_size} and model '{config.name}' takes {limit} rows at most"
        problems.append(Problem(message, "max_batch_size", hint=f"set it to {limit}, or export the model for more"))
    return [replace(each, message=f"{each.message}, in {file}") for each in problems]


def _interface_of(config: ModelConfig, artefact: Artefact) -> Interface:
    """The tensors of the package; those that the configuration writes have their names there."""
    input_types, output_types = dict(named_inputs(config)), dict(named_outputs(config))
    names = {index: name for name, index in _indices(input_types, artefact.inputs, config, "input")}
    inputs = [each.as_model_tensor(names.get(index, each.name)) for index, each in enumerate(artefact.takes)]
    names = {index: name for name, index in _indices(output_types, artefact.outputs, config, "output")}
    outputs = [each.as_model_tensor(names.get(index, each.name)) for index, each in enumerate(artefact.gives)]
    if not artefact.gives:
        outputs = [ModelTensor(named.name, "", datatype, ()) for named, datatype in output_types.items() if named.name]
    return Interface(tuple(inputs), tuple(outputs))


def _indices(
    tensors: Mapping[Named, object], known: Mapping[str, int], config: ModelConfig, kind: str
) -> Iterator[tuple[str, int]]:
    named = [tensor for tensor in tensors if tensor.name]
    yield from indices_of(named, known, config.name, kind).items()


def _widened(config: ModelConfig, interface: Interface) -> Interface:
    """The interface with outputs that have the dims of the configuration where either of both is variable."""
    batch = 1 if config.max_batch_size > 0 else 0
    written = {
        each.name: tuple(each.reshape.shape if each.reshape is not None else each.dims) for each in config.output
    }
    outputs = []
    for tensor in interface.outputs:
        dims = written.get(tensor.name, ())
        if len(dims) + batch == len(tensor.shape):
            pairs = zip(tensor.shape[batch:], dims, strict=True)
            fitted = (theirs if -1 in (ours, theirs) else ours for ours, theirs in pairs)
            tensor = replace(tensor, shape=(*tensor.shape[:batch], *fitted))
        outputs.append(tensor)
    return replace(interface, outputs=tuple(outputs))

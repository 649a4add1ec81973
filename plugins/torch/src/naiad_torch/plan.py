"""Call plan: which tensors of a batch are which arguments, and which results are which outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from naiad.errors import ConfigError, InvalidArgumentError, Problem
from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput
from naiad_config.sequence_tensors import extra_inputs, extra_outputs
from naiad_torch.datatypes import TORCH_NAMES
from naiad_torch.described import Described
from naiad_torch.naming import Named, in_order, indices_of
from naiad_torch.program import Artefact


@dataclass(frozen=True, slots=True)
class Feed:
    """One argument: the input of that name, and what the model says of it, None where it says nothing."""

    name: str
    datatype: DataType
    described: Described | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One result: its output name, and its `index` among the results of the model."""

    name: str
    datatype: DataType
    index: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The arguments in the model's order, and the results that are wanted.

    `guessed` are the kinds of tensor for which nothing but the order of the configuration says which is which. `file`
    is where the model lies.
    """

    feeds: tuple[Feed, ...]
    results: tuple[Result, ...]
    guessed: tuple[str, ...] = ()
    file: str = ""


def plan_of(config: ModelConfig, artefact: Artefact) -> Plan:
    """Raises ConfigError when the configuration does not fit the model."""
    _check(config)
    inputs_of_config, outputs_of_config = list(named_inputs(config)), list(named_outputs(config))
    types = {named.name: datatype for named, datatype in (*inputs_of_config, *outputs_of_config)}
    inputs, outputs = [named for named, _ in inputs_of_config], [named for named, _ in outputs_of_config]
    taken = indices_of(inputs, artefact.inputs, config.name, "input")
    count = artefact.input_count
    if count is not None and not artefact.required <= len(inputs) <= count:
        raise InvalidArgumentError(
            f"unable to load model '{config.name}', configuration expects {len(inputs)} inputs, model provides {count}"
        )
    ordered = sorted(taken, key=taken.__getitem__)
    if [taken[name] for name in ordered] != list(range(len(ordered))):
        numbers = ", ".join(f"'{name}' is {taken[name]}" for name in ordered)
        raise InvalidArgumentError(
            f"model '{config.name}': the indices of its inputs must be 0, 1, 2 and so on, without a gap: {numbers}"
        )
    results = indices_of(outputs, artefact.outputs, config.name, "output")
    for name, index in results.items():
        if artefact.output_count is not None and index >= artefact.output_count:
            raise missing_result(name, artefact.output_count)
    guesses = (("inputs", inputs, artefact.inputs), ("outputs", outputs, artefact.outputs))
    return Plan(
        feeds=tuple(
            Feed(name, types[name], artefact.takes[taken[name]] if artefact.takes else None) for name in ordered
        ),
        results=tuple(Result(name, types[name], index) for name, index in results.items()),
        guessed=tuple(kind for kind, named, known in guesses if in_order(named, known)),
        file=artefact.path.name,
    )


def input_names(config: ModelConfig) -> list[str]:
    """Everything that a model gets, from clients and from the server."""
    return [named.name for named, _ in named_inputs(config)]


def missing_result(name: str, count: int) -> InvalidArgumentError:
    """The error for an output that the model does not give."""
    return InvalidArgumentError(
        f"The output {name} in the model configuration refers to an output index which doesn't exist. This model has "
        f"{count} outputs"
    )


def named_inputs(config: ModelConfig) -> Iterator[tuple[Named, DataType]]:
    """Everything that a model gets, with its datatype."""
    for index, model_input in enumerate(config.input):
        yield Named(model_input.name, f"input[{index}]"), model_input.data_type
    for index, batch_input in enumerate(config.batch_input):
        for target in batch_input.target_name:
            yield Named(target, f"batch_input[{index}]", numbered=True), batch_input.data_type
    states = {state.input_name for state in (config.sequence_batching.state if config.sequence_batching else ())}
    for extra in extra_inputs(config):
        kind = "state" if extra.name in states else "control_input"
        yield Named(extra.name, f"sequence_batching.{kind}", numbered=True), extra.data_type


def named_outputs(config: ModelConfig) -> Iterator[tuple[Named, DataType]]:
    """All outputs and output states of a configuration, with their datatypes."""
    states = {state.name: state.data_type for state in extra_outputs(config)}
    for index, output in enumerate(config.output):
        if output.name not in states:
            yield Named(output.name, f"output[{index}]"), output.data_type
    for name, datatype in states.items():
        yield Named(name, "sequence_batching.state", numbered=True), datatype


def require_tensors(config: ModelConfig) -> None:
    """Raise ConfigError for a configuration without inputs or without outputs."""
    problems = [*_missing(config, "input", config.input), *_missing(config, "output", config.output)]
    if problems:
        raise ConfigError(problems)


def _check(config: ModelConfig) -> None:
    problems = [*_problems(config, "input", config.input), *_problems(config, "output", config.output)]
    if problems:
        raise ConfigError(problems)


def _missing(config: ModelConfig, kind: str, entries: Sequence[ModelInput | ModelOutput]) -> Iterator[Problem]:
    if not entries:
        message = f"model configuration must contain at least one {kind}, none were specified"
        yield Problem(message, kind, hint=f"write the {kind}s of model '{config.name}'")


def _problems(config: ModelConfig, kind: str, entries: Sequence[ModelInput | ModelOutput]) -> Iterator[Problem]:
    yield from _missing(config, kind, entries)
    for index, entry in enumerate(entries):
        datatype = entry.data_type
        if datatype not in TORCH_NAMES and datatype is not DataType.TYPE_STRING:
            message = f"unsupported datatype {datatype.name} for {kind} '{entry.name}' for model '{config.name}'"
            yield Problem(message, f"{kind}[{index}].data_type")
        if datatype is DataType.TYPE_STRING and kind == "input" and _rank(config, entry) != 1:
            message = "PyTorch takes strings as a 1 dimensional List of String only, as input"
            hint = "reshape: { shape: [ ] } makes it so in a batch"
            message = f"{message} for '{entry.name}' for model '{config.name}'"
            yield Problem(message, f"{kind}[{index}].dims", hint=hint)


def _rank(config: ModelConfig, entry: ModelInput | ModelOutput) -> int:
    shape = entry.dims if entry.reshape is None else entry.reshape.shape
    return len(shape) + (1 if config.max_batch_size > 0 else 0)

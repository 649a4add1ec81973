"""Checks of sequence controls and implicit state against a signature."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from naiad.errors import Problem
from naiad_config import DataType, ModelConfig, SequenceState
from naiad_config.sequence_tensors import control_type
from naiad_custom.signature import Argument, Result, Signature
from naiad_tensors.datatypes import TENSOR_TYPES


@dataclass(frozen=True, slots=True)
class _Claim:
    """What the configuration says of one control or state, and at which keys its name, datatype and dims stand."""

    path: str
    name: str
    data_type: DataType
    dims: tuple[int, ...]
    type_path: str
    dims_path: str


def kept_inputs(config: ModelConfig, signature: Signature, problems: list[Problem]) -> frozenset[str]:
    """The parameters that the server fills, no client: controls and states of sequences.

    What the configuration says otherwise than the function goes to `problems`. A function that gets the `Request` or
    the `Batch` finds them there, and needs no parameter for each.
    """
    arguments = {argument.name: argument for argument in signature.arguments}
    names = set()
    for claim in _inputs(config):
        names.add(claim.name)
        argument = arguments.get(claim.name)
        if argument is not None:
            _compare(claim, argument, problems)
        elif not signature.specials:
            problems.append(_missing(claim, "parameter", arguments, signature))
    return frozenset(names)


def kept_outputs(config: ModelConfig, signature: Signature, problems: list[Problem]) -> frozenset[str]:
    """The outputs that the server keeps and no client sees: states of sequences that are not outputs as well."""
    results = {result.name: result for result in signature.results}
    shown = {output.name for output in config.output}
    names = set()
    sequences = config.sequence_batching
    for index, state in enumerate(sequences.state if sequences is not None else ()):
        claim = _of_state(index, state, "output_name")
        names.add(claim.name)
        result = results.get(claim.name)
        if result is None:
            problems.append(_missing(claim, "output", results, signature))
        else:
            _compare(claim, result, problems)
    return frozenset(names - shown)


def _inputs(config: ModelConfig) -> Iterable[_Claim]:
    sequences = config.sequence_batching
    if sequences is None:
        return
    for index, control_input in enumerate(sequences.control_input):
        key = f"sequence_batching.control_input[{index}].name"
        for control in control_input.control:
            yield _Claim(key, control_input.name, control_type(control), (1,), key, key)
    for index, state in enumerate(sequences.state):
        yield _of_state(index, state, "input_name")


def _of_state(index: int, state: SequenceState, key: str) -> _Claim:
    path = f"sequence_batching.state[{index}]"
    name = getattr(state, key)
    return _Claim(f"{path}.{key}", name, state.data_type, tuple(state.dims), f"{path}.data_type", f"{path}.dims")


def _compare(claim: _Claim, code: Argument | Result, problems: list[Problem]) -> None:
    hint = f"the annotation is {code.spec}; change one of the two"
    expected = TENSOR_TYPES[code.spec.datatype].config
    if claim.data_type is not expected:
        message = f"'{claim.name}' is {claim.data_type.name} here and {expected.name} in the code"
        problems.append(Problem(message, claim.type_path, hint=hint))
    if not _fits(claim.dims, code.spec.dims):
        message = f"'{claim.name}' has dims {list(claim.dims)} here and {list(code.spec.dims)} in the code"
        problems.append(Problem(message, claim.dims_path, hint=hint))


def _fits(dims: Sequence[int], expected: Sequence[int]) -> bool:
    return len(dims) == len(expected) and all(
        there == here or -1 in (there, here) for there, here in zip(expected, dims, strict=True)
    )


def _missing(claim: _Claim, what: str, known: Mapping[str, object], signature: Signature) -> Problem:
    start = f"state '{claim.name}' is not a valid state name: " if ".state[" in claim.path else ""
    message = f"{start}'{signature.function}' has no {what} '{claim.name}'"
    return Problem(message, claim.path, hint=f"it has {', '.join(known)}")

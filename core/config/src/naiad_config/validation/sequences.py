"""Rules for sequence batching: its strategies and its control tensors."""

from collections.abc import Iterator

from naiad_config.errors import Problem
from naiad_config.model import ModelConfig
from naiad_config.paths import element
from naiad_config.sequences import ModelSequenceBatching, SequenceControl, SequenceControlInput, SequenceControlKind
from naiad_config.tensors import DataType
from naiad_config.validation.batching import preferred_sizes

_CORRELATION = SequenceControlKind.CONTROL_SEQUENCE_CORRID
_CORRELATION_TYPES = (
    DataType.TYPE_UINT64,
    DataType.TYPE_INT64,
    DataType.TYPE_UINT32,
    DataType.TYPE_INT32,
    DataType.TYPE_STRING,
)
_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in `sequence_batching`, its states aside."""
    batching = config.sequence_batching
    if batching is None:
        return
    yield from _strategies(batching, config)
    yield from _controls(batching, config.name)
    yield from _given_twice(batching, config)


def _strategies(batching: ModelSequenceBatching, config: ModelConfig) -> Iterator[Problem]:
    direct, oldest = batching.direct, batching.oldest
    if direct is not None and oldest is not None:
        yield Problem("'direct' and 'oldest' exclude each other", "sequence_batching.oldest", hint="keep one of them")
    if direct is not None and not 0.0 <= direct.minimum_slot_utilization <= 1.0:
        message = f"sequence batching minimum slot utilization must be in range (0.0, 1.0] for {config.name}"
        path = "sequence_batching.direct.minimum_slot_utilization"
        yield Problem(f"{message}, not {direct.minimum_slot_utilization}", path, hint="0 switches it off")
    if oldest is not None:
        what, path = "sequence batching preferred batch size", "sequence_batching.oldest"
        yield from preferred_sizes(what, oldest.preferred_batch_size, f"{path}.preferred_batch_size", config)
        if oldest.max_candidate_sequences < 0:
            message = f"'max_candidate_sequences' must not be negative for {config.name}"
            yield Problem(f"{message}: {oldest.max_candidate_sequences}", f"{path}.max_candidate_sequences")


def _controls(batching: ModelSequenceBatching, name: str) -> Iterator[Problem]:
    kinds: set[SequenceControlKind] = set()
    tensors: set[str] = set()
    for index, control_input in enumerate(batching.control_input):
        path = element("sequence_batching.control_input", index)
        yield from _tensor(control_input, path, tensors, name)
        for position, control in enumerate(control_input.control):
            here = element(f"{path}.control", position)
            if control.kind in kinds:
                message = f"sequence batching specifies multiple {control.kind.name} tensors for {name}"
                yield Problem(message, f"{here}.kind", hint="one tensor carries one kind of control")
            kinds.add(control.kind)
            yield from _correlation(control, here, name) if control.kind is _CORRELATION else _flag(control, here, name)


def _tensor(tensor: SequenceControlInput, path: str, tensors: set[str], name: str) -> Iterator[Problem]:
    if not tensor.name:
        yield Problem(f"sequence batching control tensor must have a name for {name}", path)
    if len(tensor.control) > 1 or (tensor.name and tensor.name in tensors):
        message = f"sequence batching control tensor '{tensor.name}' is specified for multiple control kinds for {name}"
        yield Problem(message, path, hint="give each control a tensor of its own")
    tensors.add(tensor.name)


def _given_twice(batching: ModelSequenceBatching, config: ModelConfig) -> Iterator[Problem]:
    """What the server gives to the model comes from nowhere else."""
    inputs = {tensor.name for tensor in config.input}
    controls = {tensor.name for tensor in batching.control_input}
    for index, tensor in enumerate(batching.control_input):
        if tensor.name and tensor.name in inputs:
            path = element("sequence_batching.control_input", index)
            yield _twice(f"{path}.name", f"control '{tensor.name}'", "an input of clients", config)
    for index, state in enumerate(batching.state):
        path = f"{element('sequence_batching.state', index)}.input_name"
        if state.input_name and state.input_name in inputs:
            yield _twice(path, f"state '{state.input_name}'", "an input of clients", config)
        if state.input_name and state.input_name in controls:
            yield _twice(path, f"state '{state.input_name}'", "a control", config)


def _twice(path: str, what: str, other: str, config: ModelConfig) -> Problem:
    return Problem(f"{what} of {config.name} is also {other}", path, hint="the server gives it; keep one of them")


def _flag(control: SequenceControl, path: str, name: str) -> Iterator[Problem]:
    """START, END and READY carry a pair of values: one for false, one for true."""
    keys = [key for key in _VALUES if getattr(control, key)]
    if not keys:
        message = "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true'"
        hint = "as int32_false_true: [ 0, 1 ]"
        yield Problem(f"{message} for {control.kind.name} for {name}", path, hint=hint)
    if len(keys) > 1:
        reason = " and ".join(f"'{key}'" for key in keys)
        message = f"sequence batching specifies more than one of the value pairs for {control.kind.name} for {name}"
        yield Problem(f"{message}: {reason}", f"{path}.{keys[1]}", hint="keep one of them")
    for key in keys:
        count = len(getattr(control, key))
        if count != 2:
            message = f"sequence batching control '{key}' must have exactly 2 entries for {control.kind.name}"
            yield Problem(f"{message} for {name}, not {count}", f"{path}.{key}", hint="the false value, then the true")


def _correlation(control: SequenceControl, path: str, name: str) -> Iterator[Problem]:
    """CORRID carries the correlation id itself."""
    for key in _VALUES:
        if getattr(control, key):
            message = f"sequence batching must not specify '{key}' for {control.kind.name} for {name}"
            yield Problem(message, f"{path}.{key}", hint="the tensor carries the correlation id; set 'data_type'")
    if control.data_type not in _CORRELATION_TYPES:
        allowed = ", ".join(each.name for each in _CORRELATION_TYPES)
        message = f"unexpected data type {control.data_type.name} for {control.kind.name} for {name}"
        yield Problem(message, f"{path}.data_type", hint=f"use one of {allowed}")

"""Rules for the implicit state of sequences: which tensors carry it and what it starts from."""

from collections.abc import Iterator

from naiad_config.errors import Problem
from naiad_config.model import ModelConfig
from naiad_config.paths import element
from naiad_config.sequences import SequenceInitialState, SequenceState
from naiad_config.tensors import DataType


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in the states of `sequence_batching`."""
    states = config.sequence_batching.state if config.sequence_batching is not None else ()
    seen: set[str] = set()
    unpaired: set[str] = set()
    for index, state in enumerate(states):
        path = element("sequence_batching.state", index)
        yield from _state(state, path)
        yield from _as_output(state, config, path)
        if state.input_name and state.input_name in seen:
            yield Problem(f"State input name '{state.input_name}' specified more than once.", f"{path}.input_name")
        if state.output_name and state.output_name in unpaired:
            yield Problem(f"State output name '{state.output_name}' specified more than once.", f"{path}.output_name")
        seen.add(state.input_name)
        unpaired.add(state.output_name)
        for position, initial in enumerate(state.initial_state):
            yield from _initial(state, initial, element(f"{path}.initial_state", position))


def _state(state: SequenceState, path: str) -> Iterator[Problem]:
    for key in ("input_name", "output_name"):
        if not getattr(state, key):
            yield Problem(f"a state must specify '{key}'", path, hint="name the model's tensor")
    if state.data_type is DataType.TYPE_INVALID:
        message = f"state '{state.input_name}' must specify 'data_type'"
        yield Problem(message, f"{path}.data_type", hint="that of the model's tensor, as TYPE_FP32")
    for index, dim in enumerate(state.dims):
        if dim < 1 and dim != -1:
            message = f"a dimension of state '{state.input_name}' must be >= 1, or -1 for a variable one, not {dim}"
            yield Problem(message, element(f"{path}.dims", index))
    if len(state.initial_state) > 1:
        message = f"initial_state field for state input '{state.input_name}' must contain exactly one or zero element."
        yield Problem(f"{message} Found '{len(state.initial_state)}' elements.", f"{path}.initial_state")
    if state.use_growable_memory and not state.use_same_buffer_for_input_output:
        message = f"'use_growable_memory' of state '{state.input_name}' needs 'use_same_buffer_for_input_output'"
        yield Problem(message, f"{path}.use_growable_memory", hint="set both or neither")


def _as_output(state: SequenceState, config: ModelConfig, path: str) -> Iterator[Problem]:
    for output in config.output:
        types = {output.data_type, state.data_type} - {DataType.TYPE_INVALID}
        if output.name and output.name == state.output_name and len(types) > 1:
            message = (
                f"state '{state.output_name}' is {state.data_type.name} here and {output.data_type.name} among the"
            )
            yield Problem(f"{message} outputs", f"{path}.data_type", hint="change one of the two")


def _initial(state: SequenceState, initial: SequenceInitialState, path: str) -> Iterator[Problem]:
    name = state.input_name
    if not initial.name:
        yield Problem(f"Field 'name' must be set when using initial_state for state input '{name}'.", path)
    if initial.data_type != state.data_type:
        message = f"The data type used for 'initial_state' field of state '{name}' does not match the state data type."
        yield Problem(message, f"{path}.data_type", hint=f"use {state.data_type.name}")
    if initial.zero_data is None and initial.data_file is None:
        message = f"'initial_state' of state input '{name}' has neither 'zero_data' nor 'data_file'"
        yield Problem(message, path, hint="as zero_data: true")
    if len(initial.dims) != len(state.dims):
        message = "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input"
        yield Problem(f"{message} '{name}'. {len(initial.dims)} != {len(state.dims)}", f"{path}.dims")
        return
    for index, (dim, expected) in enumerate(zip(initial.dims, state.dims, strict=True)):
        here = element(f"{path}.dims", index)
        if dim < 1:
            message = f"'initial_state' field for state input name '{name}' contains variable dimensions."
            yield Problem(message, here, hint="an initial state has a fixed shape")
        elif expected not in (-1, dim):
            message = f"'initial_state' dim for input name '{name}' doesn't match 'state' dim description."
            yield Problem(f"{message} {dim} != {expected}", here)

"""Validation of implicit state: an output state must fit the input state of the next request. Pure."""

from collections.abc import Iterator, Mapping

from naiad.errors import Problem
from naiad_config import ModelConfig, SequenceState
from naiad_kit.backends.interface.tensors import ModelTensor, shape_text


def contradictory_states(
    config: ModelConfig, inputs: Mapping[str, ModelTensor], outputs: Mapping[str, ModelTensor]
) -> Iterator[Problem]:
    """States whose output the model does not take back, and states whose first value it does not take.

    States with tensors that the model does not have, or of other ranks, are left to the checks of each tensor.
    """
    sequences = config.sequence_batching
    for index, state in enumerate(sequences.state if sequences is not None else ()):
        path = f"sequence_batching.state[{index}]"
        state_input, state_output = inputs.get(state.input_name), outputs.get(state.output_name)
        if state_input is None or state_output is None or not state_input.shape or not state_output.shape:
            continue
        start = f"model '{config.name}', state '{state.input_name}': "
        if not _can_be(state_output.shape, state_input.shape):
            yield Problem(
                f"{start}the model gives '{state.output_name}' with shape {shape_text(state_output.shape)} and takes "
                f"'{state.input_name}' with shape {shape_text(state_input.shape)}, so that what one request leaves "
                "does not fit the next",
                path,
                hint="export the model with one shape for both, or with variable dims",
            )
        yield from _first_value(state, state_input, config.max_batch_size > 0, path, start)


def _first_value(
    state: SequenceState, state_input: ModelTensor, batching: bool, path: str, start: str
) -> Iterator[Problem]:
    """A state without a written initial one begins with size 1 in each variable dim."""
    written = state.initial_state[0].dims if state.initial_state else state.dims
    dims = tuple(1 if dim == -1 else dim for dim in written)
    expected = state_input.shape[1:] if batching else state_input.shape
    fits_config = len(state.dims) == len(expected) and _can_be(state.dims, expected)  # else another check reports it
    if fits_config and not _can_be(dims, expected):
        reason = "its initial_state has" if state.initial_state else "with -1 in its dims it begins with"
        yield Problem(
            f"{start}the model takes dims {shape_text(expected)}, and {reason} dims {shape_text(dims)}",
            f"{path}.initial_state[0].dims" if state.initial_state else f"{path}.dims",
            hint=f"write dims: {shape_text(expected)}",
        )


def _can_be(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=True))

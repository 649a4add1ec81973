"""Initial states of a sequence: zeros, empty strings, or a file in the model's folder."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_config import InstanceKind, ModelConfig, SequenceState
from naiad_kit.tensor_files import read_tensor_file
from naiad_tensors.datatypes import TensorType, tensor_type, wire_name
from naiad_tensors.tensors import Tensor


@dataclass(frozen=True, slots=True)
class KeptState:
    """One state of a model.

    `dims` are the declared ones and `initial` is what a sequence starts with, which is read-only; it has the
    batch dimension 1 in front where the model batches. `in_place` states keep one array for input and output, `shown`
    ones are also outputs of the configuration. `variable` says that dims differ from sequence to sequence.
    """

    input_name: str
    output_name: str
    kind: TensorType
    dims: tuple[int, ...]
    initial: np.ndarray
    in_place: bool
    shown: bool
    variable: bool

    def tensor(self, array: np.ndarray) -> Tensor:
        """That content as an input of the model."""
        return Tensor(self.input_name, self.kind.wire, array.shape, array)

    def kept(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """What the next request starts from: one buffer for all of a sequence where the configuration says so.

        Otherwise it is read-only: a request that fails half-way leaves the state as it was.
        """
        if self.in_place:
            return written_into(before, after)
        if after.flags.writeable:  # it is the model's own array; rows of larger batches are copies that cannot be
            after = after.view()
            after.flags.writeable = False
        return after

    def fresh(self) -> np.ndarray:
        """What a sequence starts with; an array of its own where the model may write to it."""
        return self.initial.copy() if self.in_place else self.initial


def written_into(buffer: np.ndarray, array: np.ndarray) -> np.ndarray:
    """The buffer with that content; the array itself where the shapes do not agree."""
    if buffer.shape != array.shape:
        return array
    if buffer is not array:
        np.copyto(buffer, array)
    return buffer


def kept_states(config: ModelConfig, model_directory: Path) -> tuple[KeptState, ...]:
    """The states of a valid configuration, their files read. Blocks.

    Raises InvalidArgumentError naming the state, and the file where it cannot be read or holds too little.
    """
    batching = config.sequence_batching
    if batching is None:
        return ()
    outputs = {output.name for output in config.output}
    return tuple(_kept(state, config, model_directory, state.output_name in outputs) for state in batching.state)


def _kept(state: SequenceState, config: ModelConfig, model_directory: Path, shown: bool) -> KeptState:
    if state.use_growable_memory:
        _require_growing(state, config)
    kind = tensor_type(wire_name(state.data_type))
    try:
        array = _initial(state, kind, model_directory, config.name)
    except (MemoryError, ValueError) as error:  # numpy's, for what is too large to be made or even to be counted
        raise InvalidArgumentError(
            f"state '{state.input_name}' of model '{config.name}' with dims {list(state.dims)} is too large for "
            f"memory: {error}"
        ) from error
    if config.max_batch_size > 0:
        array = array.reshape(1, *array.shape)
    array.flags.writeable = False
    dims = tuple(state.dims)
    in_place = state.use_same_buffer_for_input_output
    return KeptState(state.input_name, state.output_name, kind, dims, array, in_place, shown, -1 in dims)


def _require_growing(state: SequenceState, config: ModelConfig) -> None:
    if not state.use_same_buffer_for_input_output:
        raise InvalidArgumentError(
            f"'use_growable_memory' of state '{state.input_name}' of model '{config.name}' needs "
            "'use_same_buffer_for_input_output'; set both or neither"
        )
    if any(group.kind is not InstanceKind.KIND_GPU for group in config.instance_group):
        raise InvalidArgumentError(
            f"'use_growable_memory' of state '{state.input_name}' of model '{config.name}' needs the virtual memory of "
            "a GPU, and not all of its instances are on one; take it out (a state may grow without it), or set the "
            "kind of every instance_group to KIND_GPU"
        )


def _initial(state: SequenceState, kind: TensorType, model_directory: Path, model: str) -> np.ndarray:
    initial = state.initial_state[0] if state.initial_state else None
    if initial is None:
        return _blank(kind, tuple(1 if dim == -1 else dim for dim in state.dims))
    shape = tuple(initial.dims)
    if initial.data_file is None:
        return _blank(kind, shape)
    try:
        return read_tensor_file(model_directory / "initial_state" / initial.data_file, "initial_state", kind, shape)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error}: state '{state.input_name}' of model '{model}'") from error


def _blank(kind: TensorType, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, kind.dtype) if kind.itemsize else np.full(shape, b"", dtype=object)

"""Sequence tensors: controls and states that the server adds to the requests of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from naiad.backend import ModelContext
from naiad.types import Request
from naiad_scheduler_sequence.codec.controls import Controls
from naiad_scheduler_sequence.codec.states import KeptState, kept_states
from naiad_tensors.tensors import Tensor


@dataclass(frozen=True, slots=True)
class SequenceTensors:
    """The controls and states of one model.

    `max_rows` is how many rows a batch may have. `positional` says that a row means a slot, and stays in its place when
    others are left out. `iterative` models ask for their requests again.
    """

    controls: Controls
    states: tuple[KeptState, ...]
    max_rows: int
    positional: bool
    iterative: bool

    @property
    def variable(self) -> bool:
        """Whether the states of two sequences may differ in shape."""
        return any(state.variable for state in self.states)

    def initial(self) -> list[np.ndarray]:
        """The states of a sequence that starts."""
        return [state.fresh() for state in self.states]

    def inputs_of(self, arrays: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """The states as inputs of the model."""
        return {state.input_name: state.tensor(array) for state, array in zip(self.states, arrays, strict=True)}

    def absent(self, others: Mapping[str, Tensor], like: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """The inputs of a row without a request: those of another row, but READY is unset and states are blank."""
        blanks = [blank_like(array) for array in like]
        return {**others, **self.controls.absent, **self.inputs_of(blanks)}

    def alone(self, request: Request) -> Request:
        """The request as the only one of a sequence, for executions that no scheduler asks for, such as warmup."""
        flags = self.controls.present(request.sequence_start, request.sequence_end)
        tensor = self.controls.correlation(request.correlation_id)
        correlation = {} if tensor is None else {tensor.name: tensor}
        return replace(request, inputs={**flags, **correlation, **self.inputs_of(self.initial()), **request.inputs})


def sequence_tensors(context: ModelContext) -> SequenceTensors | None:
    """What the model's configuration asks for, the files of its states read; None without sequences. Blocks.

    Raises InvalidArgumentError naming the state, and the file where it cannot be read or holds too little.
    """
    config = context.config
    batching = config.sequence_batching
    if batching is None:
        return None
    return SequenceTensors(
        Controls(config),
        kept_states(config, context.model_directory),
        max_rows=max(1, config.max_batch_size),
        positional=batching.oldest is None,
        iterative=batching.iterative_sequence,
    )


def blank_like(array: np.ndarray) -> np.ndarray:
    """Zeros, or empty strings, of that shape."""
    return np.full(array.shape, b"", dtype=object) if array.dtype.hasobject else np.zeros_like(array)

"""Messages of sequence batching, its controls and its implicit state.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from enum import IntEnum
from typing import Annotated, ClassVar

from naiad_config.fields import Wire, message
from naiad_config.tensors import DataType


class SequenceControlKind(IntEnum):
    """What a control tensor says of a row: its sequence starts, has a request at all, ends, or which it is."""

    CONTROL_SEQUENCE_START = 0
    CONTROL_SEQUENCE_READY = 1
    CONTROL_SEQUENCE_END = 2
    CONTROL_SEQUENCE_CORRID = 3


@message
class StrategyDirect:
    """Every sequence keeps one row of one instance's batch for its whole life; rows without a request stay empty.

    A batch waits at most the delay, until this share of its rows (0 to 1) has a request.
    """

    PROTO: ClassVar[str] = "ModelSequenceBatching.StrategyDirect"

    max_queue_delay_microseconds: Annotated[int, Wire(1, "uint64")] = 0
    minimum_slot_utilization: Annotated[float, Wire(2, "float")] = 0.0


@message
class StrategyOldest:
    """Batches are made of one request from each of the candidate sequences, older ones first; a row means nothing."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.StrategyOldest"

    max_candidate_sequences: Annotated[int, Wire(1, "int32")] = 0
    preferred_batch_size: Annotated[tuple[int, ...], Wire(2, "int32")] = ()
    max_queue_delay_microseconds: Annotated[int, Wire(3, "uint64")] = 0
    preserve_ordering: Annotated[bool, Wire(4)] = False


@message
class SequenceControl:
    """One control: the pair of values for false and true, or the type of the correlation id."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.Control"

    kind: Annotated[SequenceControlKind, Wire(1)] = SequenceControlKind.CONTROL_SEQUENCE_START
    int32_false_true: Annotated[tuple[int, ...], Wire(2, "int32")] = ()
    fp32_false_true: Annotated[tuple[float, ...], Wire(3, "float")] = ()
    bool_false_true: Annotated[tuple[bool, ...], Wire(5)] = ()
    data_type: Annotated[DataType, Wire(4)] = DataType.TYPE_INVALID


@message
class SequenceControlInput:
    """An input of the model that the server fills with a control; clients do not send it."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.ControlInput"

    name: Annotated[str, Wire(1)] = ""
    control: Annotated[tuple[SequenceControl, ...], Wire(2)] = ()


@message
class SequenceInitialState:
    """What a state holds when a sequence starts: zeros, or a file in the model's `initial_state` folder."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.InitialState"

    data_type: Annotated[DataType, Wire(1)] = DataType.TYPE_INVALID
    dims: Annotated[tuple[int, ...], Wire(2, "int64")] = ()
    zero_data: Annotated[bool | None, Wire(3, oneof="state_data")] = None
    data_file: Annotated[str | None, Wire(4, oneof="state_data")] = None
    name: Annotated[str, Wire(5)] = ""


@message
class SequenceState:
    """A tensor that the server keeps for each sequence: an output of one request is an input of the next."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.State"

    input_name: Annotated[str, Wire(1)] = ""
    output_name: Annotated[str, Wire(2)] = ""
    data_type: Annotated[DataType, Wire(3)] = DataType.TYPE_INVALID
    dims: Annotated[tuple[int, ...], Wire(4, "int64")] = ()
    initial_state: Annotated[tuple[SequenceInitialState, ...], Wire(5)] = ()
    use_same_buffer_for_input_output: Annotated[bool, Wire(6)] = False
    use_growable_memory: Annotated[bool, Wire(7)] = False


@message
class ModelSequenceBatching:
    """Send all requests of a sequence to one instance, in order.

    A sequence that is silent for `max_sequence_idle_microseconds` (0: a second) loses its slot.
    `iterative_sequence` makes one request a sequence that the model may ask to see again.
    """

    direct: Annotated[StrategyDirect | None, Wire(3, oneof="strategy_choice")] = None
    oldest: Annotated[StrategyOldest | None, Wire(4, oneof="strategy_choice")] = None
    max_sequence_idle_microseconds: Annotated[int, Wire(1, "uint64")] = 0
    control_input: Annotated[tuple[SequenceControlInput, ...], Wire(2)] = ()
    state: Annotated[tuple[SequenceState, ...], Wire(5)] = ()
    iterative_sequence: Annotated[bool, Wire(6)] = False

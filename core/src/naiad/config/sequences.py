"""Sequence batching, its controls and its implicit state.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from enum import IntEnum
from typing import Annotated, ClassVar

from naiad.config.fields import Wire, message
from naiad.config.tensors import DataType


class SequenceControlKind(IntEnum):
    """`ModelSequenceBatching.Control.Kind`."""

    CONTROL_SEQUENCE_START = 0
    CONTROL_SEQUENCE_READY = 1
    CONTROL_SEQUENCE_END = 2
    CONTROL_SEQUENCE_CORRID = 3


@message
class StrategyDirect:
    """`ModelSequenceBatching.StrategyDirect`."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.StrategyDirect"

    max_queue_delay_microseconds: Annotated[int, Wire(1, "uint64")] = 0
    minimum_slot_utilization: Annotated[float, Wire(2, "float")] = 0.0


@message
class StrategyOldest:
    """`ModelSequenceBatching.StrategyOldest`."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.StrategyOldest"

    max_candidate_sequences: Annotated[int, Wire(1, "int32")] = 0
    preferred_batch_size: Annotated[tuple[int, ...], Wire(2, "int32")] = ()
    max_queue_delay_microseconds: Annotated[int, Wire(3, "uint64")] = 0
    preserve_ordering: Annotated[bool, Wire(4)] = False


@message
class SequenceControl:
    """`ModelSequenceBatching.Control`."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.Control"

    kind: Annotated[SequenceControlKind, Wire(1)] = SequenceControlKind.CONTROL_SEQUENCE_START
    int32_false_true: Annotated[tuple[int, ...], Wire(2, "int32")] = ()
    fp32_false_true: Annotated[tuple[float, ...], Wire(3, "float")] = ()
    bool_false_true: Annotated[tuple[bool, ...], Wire(5)] = ()
    data_type: Annotated[DataType, Wire(4)] = DataType.TYPE_INVALID


@message
class SequenceControlInput:
    """`ModelSequenceBatching.ControlInput`."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.ControlInput"

    name: Annotated[str, Wire(1)] = ""
    control: Annotated[tuple[SequenceControl, ...], Wire(2)] = ()


@message
class SequenceInitialState:
    """`ModelSequenceBatching.InitialState`."""

    PROTO: ClassVar[str] = "ModelSequenceBatching.InitialState"

    data_type: Annotated[DataType, Wire(1)] = DataType.TYPE_INVALID
    dims: Annotated[tuple[int, ...], Wire(2, "int64")] = ()
    zero_data: Annotated[bool | None, Wire(3, oneof="state_data")] = None
    data_file: Annotated[str | None, Wire(4, oneof="state_data")] = None
    name: Annotated[str, Wire(5)] = ""


@message
class SequenceState:
    """`ModelSequenceBatching.State`."""

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
    """`ModelSequenceBatching`."""

    direct: Annotated[StrategyDirect | None, Wire(3, oneof="strategy_choice")] = None
    oldest: Annotated[StrategyOldest | None, Wire(4, oneof="strategy_choice")] = None
    max_sequence_idle_microseconds: Annotated[int, Wire(1, "uint64")] = 0
    control_input: Annotated[tuple[SequenceControlInput, ...], Wire(2)] = ()
    state: Annotated[tuple[SequenceState, ...], Wire(5)] = ()
    iterative_sequence: Annotated[bool, Wire(6)] = False

"""Sequence settings of a model configuration, for `naiad simulate`."""

from typing import TYPE_CHECKING

from naiad_testing.pictures import Signal

if TYPE_CHECKING:
    from naiad_config import ModelConfig


def wants_sequences(config: "ModelConfig") -> bool:
    """Whether requests to the model must say which sequence they are of."""
    batching = config.sequence_batching
    return batching is not None and not batching.iterative_sequence


def has_text_ids(config: "ModelConfig") -> bool:
    """Whether the model takes correlation ids as strings."""
    from naiad_config import DataType

    batching = config.sequence_batching
    return batching is not None and any(
        control.data_type is DataType.TYPE_STRING for tensor in batching.control_input for control in tensor.control
    )


def signals_of(config: "ModelConfig") -> list[Signal]:
    """The tensors of the model that say whether a row is ready, starts or ends."""
    from naiad_config import SequenceControlKind as Kind

    batching = config.sequence_batching
    signals = []
    for tensor in batching.control_input if batching else ():
        kinds = {control.kind for control in tensor.control} - {Kind.CONTROL_SEQUENCE_CORRID}
        if kinds:
            start, ready, end = (
                kind in kinds
                for kind in (Kind.CONTROL_SEQUENCE_START, Kind.CONTROL_SEQUENCE_READY, Kind.CONTROL_SEQUENCE_END)
            )
            signals.append(Signal(tensor.name, start=start, ready=ready, end=end))
    return signals

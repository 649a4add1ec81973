"""Sequence settings of a model configuration, for `naiad simulate`."""

from collections.abc import Set
from typing import TYPE_CHECKING

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


def signals_of(config: "ModelConfig") -> dict[str, Set[str]]:
    """The tensors of the model that say of a row whether it is ready, starts or ends, each with these flags."""
    from naiad_config import SequenceControlKind as Kind

    batching = config.sequence_batching
    signals: dict[str, Set[str]] = {}
    for tensor in batching.control_input if batching else ():
        kinds = {control.kind for control in tensor.control} - {Kind.CONTROL_SEQUENCE_CORRID}
        if kinds:
            signals[tensor.name] = {kind.name.removeprefix("CONTROL_SEQUENCE_").lower() for kind in kinds}
    return signals

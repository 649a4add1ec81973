"""Control tensors of sequence batching: START, END, READY and CORRID of each row."""

from collections.abc import Mapping

import numpy as np

from naiad_config import DataType, ModelConfig, SequenceControl, SequenceControlKind
from naiad_config.sequence_tensors import control_type
from naiad_tensors.datatypes import tensor_type, wire_name
from naiad_tensors.tensors import Tensor

_START, _READY, _END = (
    SequenceControlKind.CONTROL_SEQUENCE_START,
    SequenceControlKind.CONTROL_SEQUENCE_READY,
    SequenceControlKind.CONTROL_SEQUENCE_END,
)


class Controls:
    """Makes the controls of one model, each of shape [1], or [1, 1] where the model batches.

    `absent` are those of a row without a request.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._shape = (1, 1) if config.max_batch_size > 0 else (1,)
        self._correlation: tuple[str, DataType] | None = None
        pairs: dict[SequenceControlKind, tuple[str, Tensor, Tensor]] = {}
        batching = config.sequence_batching
        for control_input in batching.control_input if batching is not None else ():
            for control in control_input.control:
                if control.kind in (_START, _READY, _END):
                    pairs[control.kind] = (control_input.name, *_pair(control_input.name, control, self._shape))
                else:
                    self._correlation = (control_input.name, control.data_type)
        self._by_flags = {
            (start, end): _chosen(pairs, {_START: start, _READY: True, _END: end})
            for start in (False, True)
            for end in (False, True)
        }
        no_sequence = self.correlation(0)
        self.absent: Mapping[str, Tensor] = {
            **_chosen(pairs, {}),
            **({} if no_sequence is None else {no_sequence.name: no_sequence}),
        }

    def present(self, start: bool, end: bool) -> Mapping[str, Tensor]:
        """The flags of a row with a request."""
        return self._by_flags[start, end]

    def correlation(self, correlation_id: int | str) -> Tensor | None:
        """The tensor with the correlation id, None where the model takes none.

        Integers of fewer than 64 bits get the low bytes. A text for a model that takes numbers is 0, and a number for
        one that takes texts its digits; the sequence scheduler refuses both on arrival.
        """
        if self._correlation is None:
            return None
        name, kind = self._correlation
        if kind is DataType.TYPE_STRING:
            text = str(correlation_id) if correlation_id else ""
            array = np.full(self._shape, b"", dtype=object)
            array.fill(text.encode("utf-8", "surrogateescape"))
        else:
            dtype = tensor_type(wire_name(kind)).dtype
            number = correlation_id if isinstance(correlation_id, int) else 0
            low = number & ((1 << 8 * dtype.itemsize) - 1)
            array = np.full(self._shape, low, dtype=f"u{dtype.itemsize}").view(dtype)
        array.flags.writeable = False
        return Tensor(name, wire_name(kind), self._shape, array)


def _pair(name: str, control: SequenceControl, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The tensors for false and for true."""
    values = control.int32_false_true or control.fp32_false_true or control.bool_false_true
    wire = wire_name(control_type(control))
    tensors = []
    for value in values:
        array = np.full(shape, value, dtype=tensor_type(wire).dtype)
        array.flags.writeable = False
        tensors.append(Tensor(name, wire, shape, array))
    return tensors[0], tensors[1]


def _chosen(
    pairs: Mapping[SequenceControlKind, tuple[str, Tensor, Tensor]], flags: Mapping[SequenceControlKind, bool]
) -> dict[str, Tensor]:
    return {name: true if flags.get(kind) else false for kind, (name, false, true) in pairs.items()}

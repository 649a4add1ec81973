"""Claims: what a configuration says of each input of a model, whether clients or the server supply it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from naiad_config import DataType, ModelConfig, ModelSequenceBatching, SequenceControl
from naiad_kit.backends.interface.written import Entry, model_dims, scattered_outputs
from naiad_tensors.ragged import batch_input_shape


@dataclass(frozen=True, slots=True)
class Claim:
    """What the configuration says of one tensor; `dims` without batch dimension. `exact` dims allow no wildcard.

    `path` is the key of the tensor, `type_path` that of its datatype and `dims_path` that of its dims; `kind` says
    whether it is an `input` or an `output` of the model. `whole` is the shape of a tensor that does not hold one row
    for each item of a batch, () when any will do.
    """

    path: str
    kind: str
    name: str
    data_type: DataType
    dims: tuple[int, ...]
    type_path: str
    dims_path: str
    exact: bool = False
    is_state: bool = False
    whole: tuple[int, ...] | None = None


def input_claims(config: ModelConfig) -> Iterator[Claim]:
    """Of every input: those of clients, what tells of the batch, the controls of sequences, and their states."""
    for index, entry in enumerate(config.input):
        claim = _claim(f"input[{index}]", "input", entry)
        yield replace(claim, whole=(-1,)) if entry.allow_ragged_batch else claim
    for index, batch_input in enumerate(config.batch_input):
        path, whole = f"batch_input[{index}]", batch_input_shape(batch_input, config)
        for position, name in enumerate(batch_input.target_name):
            keys = (f"{path}.data_type", path)
            yield Claim(f"{path}.target_name[{position}]", "input", name, batch_input.data_type, (), *keys, whole=whole)
    if config.sequence_batching is not None:
        yield from _control_claims(config.sequence_batching)
        yield from _state_claims(config.sequence_batching, "input")


def output_claims(config: ModelConfig) -> Iterator[Claim]:
    """Of every output: those of clients, and the states of sequences."""
    scattered = scattered_outputs(config)
    for index, entry in enumerate(config.output):
        claim = _claim(f"output[{index}]", "output", entry, exact=True)
        yield replace(claim, whole=()) if entry.name in scattered else claim
    if config.sequence_batching is not None:
        yield from _state_claims(config.sequence_batching, "output")


def _claim(path: str, kind: str, entry: Entry, exact: bool = False) -> Claim:
    keys = (f"{path}.data_type", f"{path}.dims")
    return Claim(path, kind, entry.name, entry.data_type, model_dims(entry), *keys, exact=exact)


def _control_claims(sequences: ModelSequenceBatching) -> Iterator[Claim]:
    """Control tensors hold one element per request."""
    for index, control_input in enumerate(sequences.control_input):
        for number, control in enumerate(control_input.control):
            path = f"sequence_batching.control_input[{index}]"
            data_type, key = _control_type(control)
            yield Claim(path, "input", control_input.name, data_type, (1,), f"{path}.control[{number}].{key}", path)


def _state_claims(sequences: ModelSequenceBatching, kind: str) -> Iterator[Claim]:
    for index, state in enumerate(sequences.state):
        path = f"sequence_batching.state[{index}]"
        name = state.input_name if kind == "input" else state.output_name
        keys = (f"{path}.data_type", f"{path}.dims")
        yield Claim(f"{path}.{kind}_name", kind, name, state.data_type, tuple(state.dims), *keys, is_state=True)


def _control_type(control: SequenceControl) -> tuple[DataType, str]:
    """The datatype of a control's tensor, and the key that says so."""
    if control.fp32_false_true:
        return DataType.TYPE_FP32, "fp32_false_true"
    if control.bool_false_true:
        return DataType.TYPE_BOOL, "bool_false_true"
    if control.int32_false_true:
        return DataType.TYPE_INT32, "int32_false_true"
    return control.data_type, "data_type"

"""Reading the answers of models of sequences: states are taken out of the outputs, and kept row by row."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from naiad._kernel.answers import AnswerReader, Outcome
from naiad._kernel.call import Call
from naiad._kernel.sequences.initial import KeptState, written_into
from naiad._kernel.sequences.rows import BatchRow, SequenceBatch
from naiad._kernel.sequences.tensors import SequenceTensors
from naiad.backend import Answer, Batch, Reply, Reschedule
from naiad.datatypes import wire_name_of
from naiad.errors import ModelFailedError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.types import Request, Response, Tensor, bytes_array, host_array
from naiad_config import ModelConfig


class SequenceReader(AnswerReader):
    """Reads the answers of a model of sequences, which has `tensors` of its own beside those of the configuration.

    What a row leaves is noted in it, as arrays of its own: a state must not keep the outputs of a whole batch alive.
    The outcome of a row that the model wants to see again is its Reschedule.
    """

    def __init__(self, config: ModelConfig, version: int, strict: bool, tensors: SequenceTensors) -> None:
        super().__init__(config, version, strict)
        self.tensors = tensors
        self._states = {state.output_name: (index, state) for index, state in enumerate(tensors.states)}
        self._hidden = frozenset(state.output_name for state in tensors.states if not state.shown)
        self._in_place = any(state.in_place for state in tensors.states)

    def read(self, answer: Answer, batch: Batch) -> "Sequence[Outcome | None]":
        """One outcome a row; None in a row without a request, and as for any other model.

        Raises ModelFailedError when the answer as a whole makes no sense.
        """
        rows = batch.rows if isinstance(batch, SequenceBatch) else [BatchRow(None) for _ in batch.requests]
        if isinstance(answer, Mapping):
            outcomes = super().read(self._visible(answer), batch)
            self._take_whole(answer, rows)
        else:
            self._require_one_each(answer, batch)
            if self.layout is not None:
                answer = self.layout.cut(answer, batch)
            replies = cast("Sequence[Any]", answer)
            outcomes = [self._read_row(*each) for each in zip(replies, rows, batch.requests, strict=True)]
        for row, outcome in zip(rows, outcomes, strict=True) if self._in_place else ():
            if row.left and row.sequence is not None and outcome is not None:
                self._write_in_place(row, outcome)
        return outcomes

    def reply_of(self, call: Call, reply: Reply, request: Request, size: int) -> Response:
        """The response in a reply that a model sends; its states wait in the row until all is sent."""
        if not isinstance(reply, Reply) or call.row is None:
            return self.response(reply, request, size)
        response = self.response(self._visible_reply(reply), request, size)
        self._take_one(reply.outputs, call.row)
        return response

    def _read_whole(self, answer: Mapping[str, Any], batch: Batch) -> list[Outcome | None]:
        if not isinstance(batch, SequenceBatch) or len(batch.rows) == 1:
            return super()._read_whole(answer, batch)
        tensors = self._tensors(answer, batch.size)
        if not self._strict:
            self._check_rows(tensors, batch.size)
        wholes = [(name, tensor.datatype, (1, *tensor.shape[1:]), tensor.array) for name, tensor in tensors.items()]
        outcomes: list[Outcome | None] = []
        for at, (row, request) in enumerate(zip(batch.rows, batch.requests, strict=True)):
            if row.call is None:  # half of the rows where many sequences take turns: 3 µs each
                outcomes.append(None)
                continue
            part = {name: Tensor(name, kind, shape, array[at : at + 1]) for name, kind, shape, array in wholes}
            outcomes.append(self._response_or_error(request, part))
        return outcomes

    def _read_row(self, reply: Any, row: BatchRow, request: Request) -> Outcome | None:
        try:
            if isinstance(reply, Reschedule) and self.tensors.iterative:
                self._require_states(reply.outputs)
                self._take_one(reply.outputs, row)
                return cast("Outcome", reply)
            if isinstance(reply, Reply):
                outcome = self._read_one(self._visible_reply(reply), request, 1)
                if not isinstance(outcome, NaiadError):
                    self._take_one(reply.outputs, row)
                return outcome
        except ModelFailedError as error:
            return error
        return self._read_one(reply, request, 1)

    def _require_states(self, outputs: Mapping[str, Any]) -> None:
        unknown = [name for name in outputs if name not in self._states]
        if unknown:
            raise ModelFailedError(
                f"state '{unknown[0]}' is not a valid state name: model '{self.model}' asked for a request once more "
                f"and may leave it the states {list(self._states)}"
            )

    def _visible_reply(self, reply: Reply) -> Reply:
        return Reply(self._visible(reply.outputs), reply.parameters) if self._hidden else reply

    def _visible(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The outputs without the states that clients do not see."""
        if not self._hidden:
            return outputs
        return {name: value for name, value in outputs.items() if name not in self._hidden}

    def _take_whole(self, answer: Mapping[str, Any], rows: Sequence[BatchRow]) -> None:
        for name, (index, state) in self._states.items():
            value = answer.get(name)
            if value is None:
                continue
            array = self._array(state, value, len(rows))
            if len(rows) == 1:
                rows[0].left[index] = _own(array)
                continue
            for at, row in enumerate(rows):
                if row.call is not None:
                    row.left[index] = own = array[at : at + 1].copy()
                    own.flags.writeable = False

    def _take_one(self, outputs: Mapping[str, Any], row: BatchRow) -> None:
        taken = {
            index: _own(self._array(state, outputs[name], 1))
            for name, (index, state) in self._states.items()
            if name in outputs
        }
        row.left.update(taken)

    def _array(self, state: KeptState, value: Any, count: int) -> np.ndarray:
        """The output as an array of the state's type, for that many rows. Raises ModelFailedError."""
        where = f"model '{self.model}', state '{state.output_name}'"
        try:
            array = host_array(value)
            datatype = wire_name_of(array.dtype)
        except Exception as error:
            raise ModelFailedError(f"{where} cannot be read as an array: {describe_error(error)}") from error
        if array.dtype != state.kind.dtype and datatype != state.kind.wire:
            raise ModelFailedError(f"{where} is {datatype}; its configuration declares {state.kind.wire}")
        dims = (count, *state.dims) if self._batching else state.dims
        if array.ndim != len(dims) or any(dim not in (-1, size) for size, dim in zip(array.shape, dims, strict=True)):
            raise ModelFailedError(
                f"{where} has shape {list(array.shape)}; its configuration and a batch of {count} ask for {list(dims)}"
            )
        if state.kind.wire == "BYTES":
            return bytes_array(array)
        return array.view(state.kind.dtype) if state.kind.wire == "BF16" else array.astype(state.kind.dtype, copy=False)

    def _write_in_place(self, row: BatchRow, outcome: Outcome) -> None:
        """Where input and output of a state are one buffer, write what a row leaves into what it was given."""
        if isinstance(outcome, NaiadError):
            return
        for index, state in enumerate(self.tensors.states):
            if not state.in_place or index not in row.left or not row.given:  # a warmup was given nothing to keep
                continue
            buffer = row.given[index]
            shown = outcome.outputs.get(state.output_name) if isinstance(outcome, Response) else None
            if shown is not None and np.may_share_memory(buffer, shown.array):
                shown.payload = shown.array.copy()  # the next request writes to the buffer
            row.left[index] = written_into(buffer, row.left[index])

    def _require_one_each(self, answer: Any, batch: Batch) -> None:
        if not isinstance(answer, Sequence) or len(answer) != len(batch.requests):
            super().read(answer, batch)  # which says what is wrong with it


def reader_for(config: ModelConfig, version: int, strict: bool, tensors: SequenceTensors | None) -> AnswerReader:
    """What reads the answers of a model, which has `tensors` where its requests come in sequences."""
    if tensors is None:
        return AnswerReader(config, version, strict)
    return SequenceReader(config, version, strict, tensors)


class RowReader:
    """Reads what a model sends one by one in answer to one request of a sequence; see `AnswerReader`."""

    __slots__ = ("_call", "_reader", "decoupled", "model", "version")

    def __init__(self, reader: SequenceReader, call: Call) -> None:
        self.model, self.version, self.decoupled = reader.model, reader.version, reader.decoupled
        self._reader = reader
        self._call = call

    def response(self, reply: Reply, request: Request, size: int) -> Response:
        """The response in that reply. Raises ModelFailedError."""
        return self._reader.reply_of(self._call, reply, request, size)


def _own(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of it where it is a view on more."""
    return array if array.flags.owndata else array.copy()

"""Answer reader of sequence models: takes the next states out of the outputs, row by row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch, Reply, Reschedule
from naiad.codec import QueuedRequest, ResponseBuilder
from naiad.errors import ModelFailedError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_scheduler_sequence.codec.rows import BatchRow, SequenceBatch
from naiad_scheduler_sequence.codec.states import KeptState, written_into
from naiad_scheduler_sequence.codec.tensors import SequenceTensors
from naiad_tensors.datatypes import wire_name_of
from naiad_tensors.tensors import bytes_array, host_array


class SequenceAnswers:
    """Reads the answers of one model of sequences, which has `tensors` beside those of the configuration.

    The states that a row leaves are noted in it, as arrays of its own: a state must not keep the outputs of a whole
    batch alive. The outcome of a row that the model asks for once more is its Reschedule.
    """

    def __init__(self, model: str, batching: bool, tensors: SequenceTensors) -> None:
        self.tensors = tensors
        self._model = model
        self._batching = batching
        self._states = {state.output_name: (index, state) for index, state in enumerate(tensors.states)}
        self._hidden = frozenset(state.output_name for state in tensors.states if not state.shown)
        self._in_place = any(state.in_place for state in tensors.states)

    def read(self, answer: Answer, batch: Batch, responses: ResponseBuilder) -> Sequence[Outcome | Reschedule | None]:
        """One outcome a row; None in a vacant row, and as for any other model. See `naiad.codec.BatchCodec`."""
        is_warmup = not isinstance(batch, SequenceBatch)
        rows = batch.rows if isinstance(batch, SequenceBatch) else [BatchRow() for _ in batch.requests]
        outcomes: Sequence[Outcome | Reschedule | None]
        if isinstance(answer, Mapping):
            visible = self._visible(answer)
            if is_warmup:
                outcomes = responses.read(visible, batch)
            else:
                outcomes = responses.read_rows(visible, batch, [row.inflight is not None for row in rows])
            self._take_whole(answer, rows)
        elif not isinstance(answer, Sequence) or len(answer) != len(batch.requests):
            return responses.read(answer, batch)  # which says what is wrong with it
        else:
            replies: Any = answer if responses.layout is None else batch.cut(answer)
            outcomes = [
                self._read_row(reply, row, request, responses)
                for reply, row, request in zip(replies, rows, batch.requests, strict=True)
            ]
        for row, outcome in zip(rows, outcomes, strict=True) if self._in_place else ():
            if row.next_states and row.sequence is not None and outcome is not None:
                self._write_in_place(row, outcome)
        return outcomes

    def read_reply(
        self, reply: Reply, inflight: QueuedRequest, request: Request, size: int, responses: ResponseBuilder
    ) -> Response:
        """The response in a reply that a model sends; its states wait in the row until all is sent."""
        row = inflight.codec_state
        if not isinstance(reply, Reply) or row is None:
            return responses.response(reply, request, size)
        response = responses.response(self._visible_reply(reply), request, size)
        self._take_one(reply.outputs, row)
        return response

    def _read_row(
        self, reply: Any, row: BatchRow, request: Request, responses: ResponseBuilder
    ) -> Outcome | Reschedule | None:
        if reply is None or isinstance(reply, NaiadError):
            return reply
        try:
            if isinstance(reply, Reschedule) and self.tensors.iterative:
                self._require_states(reply.outputs)
                self._take_one(reply.outputs, row)
                return reply
            if not isinstance(reply, Reply):
                return responses.response(reply, request, 1)  # which says what is wrong with it
            response = responses.response(self._visible_reply(reply), request, 1)
            self._take_one(reply.outputs, row)
        except NaiadError as error:
            return error
        return response

    def _require_states(self, outputs: Mapping[str, Any]) -> None:
        unknown = [name for name in outputs if name not in self._states]
        if unknown:
            raise ModelFailedError(
                f"state '{unknown[0]}' is not a valid state name: model '{self._model}' asked for a request once more "
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
                rows[0].next_states[index] = _own(array)
                continue
            for at, row in enumerate(rows):
                if row.inflight is not None:
                    row.next_states[index] = own = array[at : at + 1].copy()
                    own.flags.writeable = False

    def _take_one(self, outputs: Mapping[str, Any], row: BatchRow) -> None:
        taken = {
            index: _own(self._array(state, outputs[name], 1))
            for name, (index, state) in self._states.items()
            if name in outputs
        }
        row.next_states.update(taken)

    def _array(self, state: KeptState, value: Any, count: int) -> np.ndarray:
        """The output as an array of the state's type, for that many rows. Raises ModelFailedError."""
        where = f"model '{self._model}', state '{state.output_name}'"
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

    def _write_in_place(self, row: BatchRow, outcome: Outcome | Reschedule) -> None:
        """Where input and output of a state are one buffer, write what a row leaves into what it started from."""
        if isinstance(outcome, NaiadError):
            return
        for index, state in enumerate(self.tensors.states):
            if not state.in_place or index not in row.next_states or not row.states:
                continue
            buffer = row.states[index]
            shown = outcome.outputs.get(state.output_name) if isinstance(outcome, Response) else None
            if shown is not None and np.may_share_memory(buffer, shown.array):
                shown.payload = shown.array.copy()  # the next request writes to the buffer
            row.next_states[index] = written_into(buffer, row.next_states[index])


class RowReader:
    """Reads the replies that a model sends one by one to one request of a sequence; a `naiad.codec.ReplyReader`."""

    __slots__ = ("_answers", "_inflight", "_responses", "decoupled", "model", "version")

    def __init__(self, answers: SequenceAnswers, responses: ResponseBuilder, inflight: QueuedRequest) -> None:
        self.model, self.version, self.decoupled = responses.model, responses.version, responses.decoupled
        self._answers = answers
        self._responses = responses
        self._inflight = inflight

    def response(self, reply: Reply, request: Request, size: int) -> Response:
        """The response in that reply. Raises ModelFailedError."""
        return self._answers.read_reply(reply, self._inflight, request, size, self._responses)


def _own(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of it where it is a view on more."""
    return array if array.flags.owndata else array.copy()

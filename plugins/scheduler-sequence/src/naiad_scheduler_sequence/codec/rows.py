"""Rows of a sequence batch: the request in each row, its states and its next states."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from naiad.batch import Batch, Sender
from naiad.codec import QueuedRequest
from naiad.errors import InternalError
from naiad.types import Request
from naiad_tensors.ragged import BatchLayout
from naiad_tensors.tensors import Tensor


class LiveSequence:
    """A sequence that an instance has executed requests of, or is about to.

    `number` is the scheduler's, `first` the ticket that it was first seen with, and `correlation` the tensor with the
    correlation id, where the model takes one. `states` are what its next request starts from; `starts` counts how often
    it has started.
    """

    __slots__ = ("correlation", "correlation_id", "first", "number", "slot", "starts", "states")

    def __init__(
        self,
        number: int,
        correlation_id: int | str,
        slot: int,
        first: int,
        states: list[np.ndarray],
        correlation: Tensor | None,
    ) -> None:
        self.number = number
        self.correlation_id = correlation_id
        self.slot = slot
        self.first = first
        self.states = states
        self.correlation = correlation
        self.starts = 0


class BatchRow:
    """One row of a batch; `inflight` and `sequence` are None in a vacant row, which only keeps others in theirs.

    `states` are those that it starts from, by index, and `next_states` those that it leaves to the next request once it
    has succeeded. `start` is which start of its sequence that counts for, and `sender` what is kept for the model
    between two executions. `returned` says that its batch has come back, `stream_ended` that its stream has ended, and
    `concluded` that its states were taken over or given up.
    """

    __slots__ = (
        "concluded",
        "end",
        "inflight",
        "next_states",
        "returned",
        "sender",
        "sequence",
        "start",
        "states",
        "stream_ended",
    )

    def __init__(
        self, inflight: QueuedRequest | None = None, sequence: LiveSequence | None = None, end: bool = False
    ) -> None:
        self.inflight = inflight
        self.sequence = sequence
        self.end = end
        self.states: Sequence[np.ndarray] = () if sequence is None else sequence.states
        self.start = 0 if sequence is None else sequence.starts
        self.next_states: dict[int, np.ndarray] = {}
        self.sender: Sender | None = None
        self.returned = self.stream_ended = self.concluded = False


class SequenceBatch(Batch):
    """A batch whose rows are requests of sequences; `rows` are its `requests` as the codec knows them.

    `senders` are those that go on from an earlier execution, by row.
    """

    __slots__ = ("_states", "rows")

    def __init__(
        self,
        rows: Sequence[BatchRow],
        requests: Sequence[Request],
        states: Collection[str],
        open_sender: Callable[[int], Sender],
        senders: Mapping[int, Sender],
        layout: BatchLayout | None,
    ) -> None:
        super().__init__(requests, [1] * len(requests), open_sender, layout, dict(senders) or None)
        self.rows = rows
        self._states = states

    def wants(self, output: str) -> bool:
        """States are always wanted."""
        return output in self._states or super().wants(output)

    def alone(self, index: int) -> Batch:
        """A batch of one of the rows alone; it has no senders."""
        return SequenceBatch([self.rows[index]], [self.requests[index]], self._states, no_sender, {}, self.layout)


def no_sender(_index: int) -> Sender:
    """A row alone has no sender. Raises InternalError."""
    raise InternalError("a row that was taken out of its batch has no response sender")

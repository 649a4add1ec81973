"""Batches of sequences: which request is in which row, and the states that it brings and leaves."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from naiad._kernel.call import Call
from naiad._kernel.worker import Work
from naiad.backend import Reply
from naiad.batch import Batch, InputLayout, Sender
from naiad.errors import InternalError, NaiadError
from naiad.types import Request, Tensor


class LiveSequence:
    """A sequence that an instance has executed requests of, or is about to.

    `number` is the scheduler's, `first` the ticket that it was first seen with, and `correlation` the tensor that tells
    the model whose it is, where it takes one. `states` are what its next request starts from; `starts` counts how often
    it has started.
    """

    __slots__ = ("correlation", "correlation_id", "first", "number", "place", "starts", "states")

    def __init__(
        self,
        number: int,
        correlation_id: int | str,
        place: int,
        first: int,
        states: list[np.ndarray],
        correlation: Tensor | None,
    ) -> None:
        self.number = number
        self.correlation_id = correlation_id
        self.place = place
        self.first = first
        self.states = states
        self.correlation = correlation
        self.starts = 0


class BatchRow:
    """One row of a batch; `call` and `sequence` are None in a row that only keeps others in their places.

    `given` are the states that it starts from, by index, and `left` those that it leaves to the next request once it
    has succeeded. `start` is which start of its sequence that counts for, and `sender` what is kept for the model
    between two executions. `back` says that its batch has come back, `over` that its stream has ended, `concluded` that
    its states were taken over or given up, and `iterates` that its model may ask for it again.
    """

    __slots__ = (
        "back",
        "call",
        "concluded",
        "end",
        "given",
        "iterates",
        "left",
        "over",
        "sender",
        "sequence",
        "start",
    )

    def __init__(self, call: Call | None = None, sequence: LiveSequence | None = None, end: bool = False) -> None:
        self.call = call
        self.sequence = sequence
        self.end = end
        self.given: Sequence[np.ndarray] = () if sequence is None else sequence.states
        self.start = 0 if sequence is None else sequence.starts
        self.left: dict[int, np.ndarray] = {}
        self.sender: Sender | None = None
        self.back = self.over = self.concluded = self.iterates = False


class SequenceBatch(Batch):
    """A batch whose rows are requests of sequences; `rows` are its `requests` as the kernel knows them.

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
        layout: InputLayout | None,
    ) -> None:
        super().__init__(requests, [1] * len(requests), open_sender, layout)
        self.rows = rows
        self._states = states
        if senders:
            self._senders = dict(senders)

    def wants(self, output: str) -> bool:
        """States are always wanted."""
        return output in self._states or super().wants(output)

    def alone(self, index: int) -> Batch:
        """A batch of one of the rows alone; it has no senders."""
        return SequenceBatch([self.rows[index]], [self.requests[index]], self._states, nobody, {}, self.layout)

    def taken_sender(self, index: int) -> Sender | None:
        """The sender of that row, where it was taken."""
        return self._senders.get(index) if self._senders is not None else None


class SequenceWork(Work):
    """A batch of sequences on its way; `following` goes to the same place after it, before that is free.

    There is one when the states of the rows differ in shape, so that they cannot be joined.
    """

    __slots__ = ("following", "rows")

    batch: SequenceBatch

    def __init__(self, place: int, rows: Sequence[BatchRow], batch: SequenceBatch) -> None:
        calls = [row.call for row in rows if row.call is not None]
        super().__init__(place, [call.ticket.id for call in calls], calls, batch)
        self.rows = rows
        self.following: SequenceWork | None = None


class NobodysSender:
    """Takes the responses of a row without a request, and drops them."""

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        """Nobody wants it."""
        return False

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> None:
        """There is always room for what is dropped."""

    def is_cancelled(self) -> bool:
        """Nobody waits."""
        return True


def nobody(_index: int) -> Sender:
    """There is nobody to send to. Raises InternalError."""
    raise InternalError("a row that was taken out of its batch has no response sender")

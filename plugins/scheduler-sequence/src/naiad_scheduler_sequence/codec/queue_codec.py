"""The codec of a queue of sequences: carries states between requests and notifies instances of ends."""

import functools
import logging
from collections.abc import Sequence
from contextlib import suppress

from naiad.backend import Reschedule
from naiad.batch import Batch
from naiad.codec import CodecQueue, Completion, Execution, QueuedRequest
from naiad.errors import NaiadError
from naiad.scheduler import Dispatch, Ticket
from naiad.server import Outcome
from naiad.types import Request
from naiad_kit.sequences import SequenceEnd, SequenceEndReason, notify_end
from naiad_kit.sparse_log import SparseLog
from naiad_scheduler_sequence.codec.answers import SequenceAnswers
from naiad_scheduler_sequence.codec.batches import SequenceBatchBuilder
from naiad_scheduler_sequence.codec.live import LiveSequences
from naiad_scheduler_sequence.codec.rows import BatchRow, SequenceBatch


class SequenceQueueCodec:
    """A `naiad.codec.QueueCodec` for a scheduler that lays out sequences. Lives on the event loop's thread."""

    def __init__(self, answers: SequenceAnswers, queue: CodecQueue) -> None:
        self._iterative = answers.tensors.iterative
        self._queue = queue
        self._log = SparseLog(logging.getLogger("naiad.model"))
        self._live = LiveSequences(answers.tensors, self._notify, queue.recount)
        self._builder = SequenceBatchBuilder(answers, queue, self._live)

    @property
    def live(self) -> int:
        """How many sequences instances know of."""
        return len(self._live)

    @property
    def open(self) -> int:
        """The number of sequences that have started and not ended."""
        return self._live.open

    def keeps(self, request: Request) -> bool:
        """Whether the request continues a sequence that is open here. A START closes the open sequence."""
        if not self._live.is_open(request.correlation_id):
            return False
        if request.sequence_start:
            self._live.leave(request.correlation_id)
            return False
        return True

    def arrived(self, ticket: Ticket) -> None:
        """A request waits. A START for a sequence that has not ended is a warning, once a minute at most."""
        if ticket.sequence_start and self._live.is_open(ticket.sequence_id):
            self._log.warning(
                "sequence %.128r of model '%s' starts anew before it has ended: the model forgets what was before; if "
                "two callers chose the same id, let them choose others",
                ticket.sequence_id,
                self._queue.responses.model,
            )
        self._live.arrived(ticket)

    def build(self, dispatch: Dispatch, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        """The executions of these requests; see `SequenceBatchBuilder`."""
        return self._builder.build(dispatch, requests)

    def completed(
        self, batch: Batch, outcomes: Sequence[Outcome | Reschedule | None], error: NaiadError | None
    ) -> Completion | None:
        """Keep the states that rows leave, and queue again what the model asks for; the rest is to be answered.

        A failure in it ends the sequences of all rows.
        """
        if not isinstance(batch, SequenceBatch):
            return None
        try:
            return self._take_back(batch, outcomes, error)
        except BaseException:
            for row in batch.rows:
                with suppress(Exception):
                    self._conclude(row, failed=True, reason=SequenceEndReason.CANCELLED)
            raise

    def streamed(self, request: QueuedRequest, outcome: Outcome) -> None:
        """The stream of a request has ended; its row is concluded once its batch has returned, too."""
        row: BatchRow | None = request.codec_state
        if row is None or row.stream_ended:
            return
        row.stream_ended = True
        failed = isinstance(outcome, NaiadError)
        if failed:
            row.next_states = {}
        if row.returned:
            self._conclude(row, failed)

    def withdrawn(self, request: QueuedRequest) -> None:
        """The request was given up while it waited, and so is the sequence that it belongs to."""
        self._live.given_up(request.ticket)
        if request.codec_state is not None:
            request.codec_state.sender = None

    def lost(self, slot: int) -> None:
        """The sequences of that slot are lost with its instance."""
        self._live.lost(slot)

    def ended(self, ends: Sequence[SequenceEnd]) -> None:
        """The scheduler has ended these sequences."""
        for end in ends:
            self._live.ended(end.sequence, end.reason)

    def end_all(self, unloading: bool) -> None:
        """All sequences are over: a new scheduler numbers them from 1 again, and an unloaded model has none."""
        self._live.end_all(SequenceEndReason.UNLOAD if unloading else SequenceEndReason.CANCELLED)

    def _take_back(
        self, batch: SequenceBatch, outcomes: Sequence[Outcome | Reschedule | None], error: NaiadError | None
    ) -> Completion:
        requests: list[QueuedRequest] = []
        concluded: list[Outcome | None] = []
        requeued: list[QueuedRequest] = []
        if error is not None:
            outcomes = [error] * len(batch.rows)
        for index, (row, outcome) in enumerate(zip(batch.rows, outcomes, strict=True)):
            request = row.inflight
            if request is None:
                continue
            row.returned = True
            if isinstance(outcome, Reschedule):
                row.sender = batch.taken_sender(index)
                outcome = self._requeue(request, row)
                if outcome is None:
                    requeued.append(request)
                    continue
            elif outcome is not None or request.stream is None or row.stream_ended:
                twice = request.stream is not None and outcome is not None  # answered, which is an error
                self._conclude(row, twice or isinstance(outcome, NaiadError))
            requests.append(request)
            concluded.append(outcome)
        return Completion(requests, concluded, requeued)

    def _requeue(self, request: QueuedRequest, row: BatchRow) -> NaiadError | None:
        """Queue a request again, with the states that it left; the error where that cannot be."""
        error = None if request.over else self._queue.requeue(request)
        if request.over or error is not None:
            row.sender = None
            self._conclude(row, failed=True, reason=SequenceEndReason.CANCELLED)
        else:
            self._live.carry(row)
            row.concluded = True
        return error

    def _conclude(self, row: BatchRow, failed: bool, reason: SequenceEndReason = SequenceEndReason.END) -> None:
        """A request is over: its states go to the sequence, which ends with it or goes on."""
        if row.concluded:
            return
        row.concluded = True
        if not failed:
            self._live.carry(row)
        if row.end or self._iterative:
            self._live.finished(row, reason)
        row.next_states = {}
        if row.inflight is not None:
            row.inflight.codec_state = None  # a cycle: both, and their tensors, would wait for the garbage collector

    def _notify(self, slot: int, correlation_id: int | str, reason: SequenceEndReason) -> None:
        self._queue.instruct(slot, "sequence_ended", functools.partial(notify_end, correlation_id, reason))

"""The queue of a model of sequences: states go from request to request, and the model hears when a sequence is over."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic

from naiad._kernel.answers import AnswerReader, Outcome
from naiad._kernel.call import Call, Deliver
from naiad._kernel.queue import ModelQueue
from naiad._kernel.refusals import refusal, scheduler_started_anew
from naiad._kernel.sequences.assembling import SequenceAssembler
from naiad._kernel.sequences.live import LiveSequences, TellInstance
from naiad._kernel.sequences.reading import SequenceReader
from naiad._kernel.sequences.rows import BatchRow, SequenceWork
from naiad._kernel.statistics import VersionCounters
from naiad._kernel.streams import ResponseStream, Sent
from naiad._kernel.worker import Work
from naiad.backend import Reschedule
from naiad.errors import InternalError, NaiadError
from naiad.extend import ExecutionGate
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.scheduler import Scheduler, SequenceEnd, SequenceEndReason
from naiad.trace_events import record_phases
from naiad.types import Request

_logger = logging.getLogger("naiad.model")


class SequenceQueue(ModelQueue):
    """A queue whose scheduler lays out sequences; `on_ended` is told of each that is over, and why."""

    def __init__(
        self,
        reader: AnswerReader,
        make_scheduler: Callable[[], Scheduler],
        counters: VersionCounters,
        send: Callable[[Work], None],
        gate: ExecutionGate | None = None,
    ) -> None:
        if not isinstance(reader, SequenceReader):
            raise TypeError("a queue of sequences needs a reader that knows states")
        self.on_ended: TellInstance = lambda place, correlation_id, reason: None
        self._tensors = reader.tensors
        self._live = LiveSequences(self._tensors, self._tell)
        self._closing = asyncio.Event()
        super().__init__(reader, make_scheduler, counters, send, gate)
        self._assembler = SequenceAssembler(reader, self._assembler.streams, self._live)

    @property
    def live(self) -> int:
        """How many sequences instances know of."""
        return len(self._live)

    @property
    def backlog(self) -> int | None:
        """How many sequences wait for a slot, None where the scheduler does not say."""
        try:
            waiting = getattr(self._scheduler, "backlog", None)
        except BaseException as error:  # noqa: BLE001 - metrics ask for this property of a plugin
            raise_interrupt(error)
            return None
        return waiting if isinstance(waiting, int) else None

    @property
    def open(self) -> int:
        """Of how many sequences further requests may come."""
        return self._live.open

    def is_open(self, correlation_id: int | str) -> bool:
        """Whether a request has started that sequence and none has ended it."""
        return self._live.is_open(correlation_id)

    def leave(self, correlation_id: int | str) -> None:
        """No further requests of that sequence will come here."""
        self._live.leave(correlation_id)
        self._closing.set()

    def submit(self, request: Request, batch_size: int, shape_key: Hashable, deliver: Deliver) -> Call:
        """Take a checked request in; see `ModelQueue.submit`."""
        call = super().submit(request, batch_size, shape_key, deliver)
        if call.ticket.sequence_start and self._live.is_open(call.ticket.sequence_id):
            _logger.warning(
                "sequence %.128r of model '%s' starts anew before it has ended: the model forgets what was before; if "
                "two callers chose the same id, let them choose others",
                call.ticket.sequence_id,
                self._model,
            )
        self._live.arrived(call.ticket)
        self._closing.set()
        return call

    def lose(self, place: int) -> None:
        """A place is gone, and the sequences there are lost with it."""
        super().lose(place)
        self._live.lost(place)
        self._closing.set()

    def done(self, work: Work) -> None:
        """A batch came back. What could not be joined with it goes next, before the place pulls anything else."""
        if not isinstance(work, SequenceWork):
            super().done(work)
            return
        self._take_rows_back_or_fail(work)
        if work.following is None:
            super().done(work)
            return
        self._settle(work)
        following = work.following
        if self.traces:
            following.traces = [call.request.trace for call in following.calls if call.request.trace is not None]
            following.reason = work.reason
        self._send(following)
        self._delivery.answer(work)

    def lost(self, work: Work) -> None:
        """A batch died with its worker, and what was to follow it cannot go there either."""
        following = None
        if isinstance(work, SequenceWork):
            self._take_rows_back_or_fail(work)
            following = work.following
        super().lost(work)
        if following is not None:
            following.error, following.started_ns, following.done_ns = work.error, work.done_ns, work.done_ns
            self.lost(following)

    async def drained(self) -> None:
        """Return when nothing waits, executes or streams, and no sequence is open."""
        await super().drained()
        while self._live.open:
            self._closing.clear()
            await self._closing.wait()
            await super().drained()

    def end_all_sequences(self) -> None:
        """The model goes out of service: the instances are told that their sequences are over."""
        self._live.end_all(SequenceEndReason.UNLOAD)
        self._closing.set()

    # What becomes of rows

    def _take_rows_back_or_fail(self, work: SequenceWork) -> None:
        """The same; a fault of the server in it fails the batch and ends its sequences, but keeps the slot."""
        try:
            self._take_rows_back(work)
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("taking back a batch of sequences of model '%s' failed", self._model)
            work.error = InternalError(f"the answer of model '{self._model}' was lost: {describe_error(error)}")
            work.calls = [row.call for row in work.rows if row.call is not None]
            for row in work.rows:
                with suppress(Exception):
                    self._conclude(row, failed=True, reason=SequenceEndReason.CANCELLED)

    def _take_rows_back(self, work: SequenceWork) -> None:
        """Keep what the rows leave, queue again what the model asks for, and leave the rest to be answered."""
        calls: list[Call] = []
        outcomes: list[Outcome | None] = []
        failed: Sequence[Outcome | None] = [work.error] * len(work.rows)
        given = work.outcomes if work.error is None else failed
        for index, (row, outcome) in enumerate(zip(work.rows, given, strict=True)):
            call = row.call
            if call is None:
                continue
            row.back = True
            if isinstance(outcome, Reschedule):
                row.sender = work.batch.taken_sender(index)
                outcome = self._again(call, row)
                if outcome is None:
                    if call.request.trace is not None:
                        record_phases(call.request.trace, work.batch, work.started_ns, work.done_ns)
                    continue
            elif outcome is None and call.stream is not None and not row.over:
                pass  # its stream concludes it
            else:
                twice = call.stream is not None and outcome is not None  # answered, which is an error
                self._conclude(row, twice or isinstance(outcome, NaiadError))
            calls.append(call)
            outcomes.append(outcome)
        work.calls, work.outcomes = calls, outcomes

    def _again(self, call: Call, row: BatchRow) -> NaiadError | None:
        """Queue a request again, with the states that it left; the error where that cannot be."""
        error = None if call.over else self._refused_again(call)
        if call.over or error is not None:
            row.sender = None
            self._conclude(row, failed=True, reason=SequenceEndReason.CANCELLED)
        else:
            self._live.carry(row)
            row.concluded = True
        return error

    def _refused_again(self, call: Call) -> NaiadError | None:
        old = call.ticket
        if old.id < self._first_id:
            return scheduler_started_anew(self._model)
        self._last_id += 1
        ticket = replace(
            old,
            id=self._last_id,
            arrival=monotonic(),
            sequence_start=False,
            sequence_end=False,
            continues=old.id,
        )
        try:
            refused = self._scheduler.arrive(ticket)
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            return self._scheduler_failed(error)
        if refused is not None:
            return refusal(refused, self._model)
        call.ticket = ticket
        self._calls[ticket.id] = call
        self._gathering.arm()
        return None

    def _conclude(self, row: BatchRow, failed: bool, reason: SequenceEndReason = SequenceEndReason.END) -> None:
        """A request is over: its sequence goes on with what it left, or is over, too."""
        if row.concluded:
            return
        row.concluded = True
        if not failed:
            self._live.carry(row)
        if row.end or self._tensors.iterative:
            self._live.finished(row, reason)
        row.left = {}
        if row.call is not None:
            row.call.row = None  # they know each other: both, and their tensors, would wait for the garbage collector

    def _pass_on(self, stream: ResponseStream, sent: Sequence[Sent]) -> None:
        call = stream.call
        row = call.row
        last = next((each.outcome for each in sent if isinstance(each.outcome, NaiadError) or each.outcome.final), None)
        if last is not None and row is not None and not row.over:
            row.over = True
            if isinstance(last, NaiadError):
                row.left = {}
            if row.back:
                self._conclude(row, isinstance(last, NaiadError))
        super()._pass_on(stream, sent)
        if last is not None and call.ticket.id in self._calls and not self._is_busy(call):
            self._forget(call)  # it waits to be executed again, although its model has said that all is sent

    # What becomes of sequences

    def _end_sequences(self, ended: Sequence[SequenceEnd]) -> None:
        for end in ended:
            self._live.ended(end.sequence, end.reason)
        self._closing.set()

    def _forget(self, call: Call, settled: bool = False) -> None:
        if not self._is_busy(call):
            self._live.given_up(call.ticket)
            if call.row is not None:
                call.row.sender = None
            self._closing.set()
        super()._forget(call, settled)

    def _start_scheduler(self) -> None:
        super()._start_scheduler()
        self._live.end_all(SequenceEndReason.CANCELLED)  # the new one numbers sequences from 1 again
        self._closing.set()

    def _tell(self, place: int, correlation_id: int | str, reason: SequenceEndReason) -> None:
        self.on_ended(place, correlation_id, reason)

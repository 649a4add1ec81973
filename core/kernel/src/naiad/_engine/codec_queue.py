"""The queue of a model version whose scheduler brought a batch codec, which makes the batches and takes them back."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, cast

from naiad._engine.call import Call
from naiad._engine.containment import logged
from naiad._engine.execution import Execution
from naiad._engine.queue import Instruct, ModelQueue
from naiad._engine.refusals import refusal, scheduler_started_anew
from naiad._engine.responses import ResponseBuilder
from naiad._engine.streams import ResponseStream, Sent
from naiad.backend import Sender
from naiad.codec import BatchCodec, QueueCodec, QueuedRequest, ReplyReader
from naiad.errors import InternalError, NaiadError
from naiad.extend import ExecutionGate
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.scheduler import Dispatch, Drop, Scheduler, Ticket
from naiad_statistics.versions import VersionCounters

_logger = logging.getLogger("naiad.model")


class CodecModelQueue(ModelQueue):
    """A queue with a codec, for which it is the `naiad.codec.CodecQueue`.

    Further executions of a batch wait here until the one before has come back from their slot.
    """

    codec: QueueCodec

    def __init__(
        self,
        responses: ResponseBuilder,
        counters: VersionCounters,
        codec: BatchCodec,
        gate: ExecutionGate | None = None,
    ) -> None:
        super().__init__(responses, counters, gate, codec.requeues)
        self._batch_codec = codec
        self._following: dict[int, list[Execution]] = {}
        self._is_open = False

    def open(
        self,
        make_scheduler: Callable[[], Scheduler],
        workers: Sequence[Callable[[Execution], None]],
        instruct: Instruct = lambda *_: None,
    ) -> None:
        """As `ModelQueue.open`; raises what opening the codec raises."""
        super().open(make_scheduler, workers, instruct)
        self.codec, self._is_open = self._batch_codec.open(self), True

    def done(self, execution: Execution) -> None:
        """A batch came back: the slot takes the one that follows it, or pulls one; the calls are answered meanwhile."""
        following = self._complete(execution)
        if following is None:
            super().done(execution)
            return
        try:
            self._settle_execution(execution)
        finally:
            try:
                self._workers[following.slot](following)
            finally:
                self._delivery.answer(execution)

    def lost(self, execution: Execution) -> None:
        """A batch died with its worker: its calls fail, and those that were to follow it too."""
        following = self._complete(execution)
        super().lost(execution)
        if following is not None:
            following.error, following.started_ns = execution.error, execution.done_ns
            following.done_ns = execution.done_ns
            self.lost(following)

    def retire(self) -> None:
        """The version goes out of service: what the codec knows is over."""
        self._guarded(self.codec.end_all, True)

    # For the codec: see `naiad.codec.CodecQueue`

    def sender(self, request: QueuedRequest, slot: int, replies: ReplyReader) -> Sender:
        """The sender of a call that executes at that slot. For any thread."""
        return self._open_sender((cast("Call", request),), slot, 0, replies)

    def requeue(self, request: QueuedRequest) -> NaiadError | None:
        """Queue a call again that has come back; the error where the scheduler refuses that."""
        call = cast("Call", request)
        old = call.ticket
        if old.id < self._first_id:
            return scheduler_started_anew(self._model)
        self._last_id += 1
        ticket = replace(
            old, id=self._last_id, arrival=monotonic(), sequence_start=False, sequence_end=False, continues=old.id
        )
        try:
            refused = self._scheduler.arrive(ticket)
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            return self._scheduler_failed(error)
        if refused is not None:
            return refusal(refused, self._model)
        call.ticket = ticket
        self._waiting[ticket.id] = call
        self._coalescer.arrive()
        return None

    def recount(self) -> None:
        """What the codec has open may have become nothing."""
        self._recount.set()

    # Batches

    def _build(self, dispatch: Dispatch) -> Execution:
        """The first execution of a dispatch; the codec may leave it to the plain queue.

        Raises RuntimeError when the codec finds the dispatch invalid.
        """
        slot, calls = dispatch.instance, [self._waiting[ticket] for ticket in dispatch.tickets]
        executions = [
            Execution(
                slot,
                [request.ticket.id for request in planned.requests],
                planned.requests,
                planned.batch,
                dispatch.reason,
                [each.request.trace for each in planned.requests if each.request.trace is not None],
            )
            for planned in self.codec.build(dispatch, calls)
        ]
        self._following[slot] = executions[:0:-1]
        return executions[0] if executions else super()._build(dispatch)

    def _complete(self, execution: Execution) -> Execution | None:
        """Let the codec take an execution back; the one that follows it at its slot, where there is one.

        A fault of the codec fails the execution.
        """
        try:
            completion = self.codec.completed(execution.batch, execution.outcomes, execution.error)
            if completion is not None:
                execution.calls, execution.outcomes = completion.requests, completion.outcomes
                for requeued in completion.requeued if execution.traces else ():
                    if requeued.request.trace is not None:
                        requeued.request.trace.executed(execution.started_ns, execution.phases())
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("taking back a batch of model '%s' failed", self._model)
            execution.error = InternalError(f"the answer of model '{self._model}' was lost: {describe_error(error)}")
        following = self._following[execution.slot]
        return following.pop() if following else None

    # What the codec has to know

    def _arrived(self, ticket: Ticket) -> Drop | None:
        refused = self._scheduler.arrive(ticket)
        if refused is None:
            self.codec.arrived(ticket)
        return refused

    def _pass_on(self, stream: ResponseStream, sent: Sequence[Sent]) -> None:
        """As in any queue; the codec has to know the end of a stream first."""
        call = stream.call
        last = next((each.outcome for each in sent if isinstance(each.outcome, NaiadError) or each.outcome.final), None)
        if last is not None:
            self._guarded(self.codec.streamed, call, last)
        super()._pass_on(stream, sent)
        if last is not None and call.ticket.id in self._waiting:
            self._forget(call)  # it waits to be executed again, although its model has said that all is sent

    def _forget(self, call: Call, settled: bool = False) -> None:
        if not self._is_busy(call):
            self._guarded(self.codec.withdrawn, call)
        super()._forget(call, settled)

    def _is_drained(self) -> bool:
        return not self.outstanding and not self.codec.open

    def _sequences_ended(self, ends: Sequence[Any]) -> None:
        self.codec.ended(ends)

    def _state_lost(self, slot: int) -> None:
        self.codec.lost(slot)

    def _start_scheduler(self) -> None:
        super()._start_scheduler()
        self._arrive = self._arrived
        if self._is_open:  # what is under way is the old scheduler's
            self._guarded(self.codec.end_all, False)

    def _guarded(self, act: Callable[..., None], *arguments: object) -> None:
        """Call the codec; what it raises is logged, because nothing may hang for it."""
        with logged(f"the batch codec of model '{self._model}'", model=self._model):
            act(*arguments)

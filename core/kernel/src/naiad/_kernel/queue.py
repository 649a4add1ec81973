"""The queue of one model version: the thin shell that drives a pure scheduler with the real clock."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from time import monotonic
from typing import cast

from naiad._kernel.alarm import Alarm
from naiad._kernel.answers import AnswerReader
from naiad._kernel.assembling import Assembler, calls_of
from naiad._kernel.call import Call, Deliver
from naiad._kernel.coding import CodedAssembler, Instruct, no_instance
from naiad._kernel.delivery import Delivery, errors_of
from naiad._kernel.gated_slots import GatedSlots
from naiad._kernel.gathering import Gathering
from naiad._kernel.refusals import came_too_late, expired, reason_of, refusal, scheduler_started_anew
from naiad._kernel.statistics import FailureReason, VersionCounters
from naiad._kernel.streams import ResponseStream, Sent, Streams
from naiad._kernel.worker import Work
from naiad.backend import Sender
from naiad.codec import BatchCodec, QueueCodec, QueuedRequest, ReplyReader
from naiad.errors import InternalError, NaiadError
from naiad.extend import ExecutionGate, Suspension
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.scheduler import Dispatch, Drop, Scheduler, SequenceEndReason, Ticket
from naiad.types import Request

_logger = logging.getLogger("naiad.model")


class ModelQueue:
    """Tickets in, batches out; `responses` reads what models send one by one. Every method is for the event loop.

    `traces` says that there are traced requests, or have been: before the first one nobody looks for them. With a
    `gate` a slot is idle only while the gate lets it execute. A `codec` makes the batches and takes them back, where
    the scheduler brought one.
    """

    def __init__(
        self,
        responses: AnswerReader,
        make_scheduler: Callable[[], Scheduler],
        counters: VersionCounters,
        send: Callable[[Work], None],
        gate: ExecutionGate | None = None,
        codec: BatchCodec | None = None,
        instruct: Instruct = no_instance,
    ) -> None:
        model = self._model = responses.model
        self.responses = responses
        self.instruct = instruct
        self.traces = False
        self._make_scheduler = make_scheduler
        self._counters = counters
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, Call] = {}
        self._running: set[int] = set()
        self._streaming: set[int] = set()
        self._idle: list[int] = []
        self._gated: GatedSlots | None = None
        self._add_idle: Callable[[int], None] = self._idle.append
        self._decide: Callable[[], None] = self._decide_with_idle
        if gate is not None:
            gated = GatedSlots(gate, self._idle, self._decide_with_idle, lambda: self.waiting, self._running)
            self._gated, self._add_idle, self._decide = gated, gated.free, gated.decide
        suspend_sender = None if self._gated is None else self._gated.suspend_sender
        pass_on = self._pass_on if codec is None else self._pass_on_to_codec
        self._streams = Streams(responses, pass_on, suspend_sender)
        self._assembler: Assembler | CodedAssembler = Assembler(responses, self._streams)
        self._delivery = Delivery(model, counters, codec is not None and codec.requeues)
        self._last_id = 0
        self._gathering = Gathering(self._loop, self._decide, self._idle)
        self._alarm = Alarm(self._loop, self._woken)
        self._wake_at: float | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._recount = asyncio.Event()
        self._has_codec = codec is not None
        self.codec: QueueCodec | None = None
        self._coded: CodedAssembler | None = None
        self._start_scheduler()
        if codec is not None:
            self.codec = codec.open(self)
            self._assembler = self._coded = CodedAssembler(self._assembler, self.codec, model)

    @property
    def outstanding(self) -> int:
        """How many requests wait, execute or stream."""
        return len(self._calls)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._calls) - len(self._running) - len(self._streaming)

    def submit(self, request: Request, batch_size: int, shape_key: Hashable, deliver: Deliver) -> Call:
        """Take a checked request in.

        Raises QueueFullError when the scheduler refuses it, DeadlineExceededError when it comes too late.
        """
        now = monotonic()
        if request.deadline is not None and request.deadline <= now:
            self._counters.failed(1, 0, FailureReason.REJECTED)
            raise came_too_late(self._model)
        self._last_id += 1
        ticket = Ticket(
            self._last_id,
            now,
            batch_size,
            shape_key,
            request.priority,
            request.timeout_microseconds / 1e6 if request.timeout_microseconds else 0.0,
            request.correlation_id,
            request.sequence_start,
            request.sequence_end,
        )
        call = Call(self.take_back, request, deliver, ticket)
        try:
            refused = self._arrive(ticket)
        except BaseException as error:
            self._counters.failed(1, 0, FailureReason.OTHER)
            raise self._scheduler_failed(error) from error
        if refused is not None:
            self._counters.failed(1, 0, reason_of(refused))
            raise refusal(refused, self._model)
        self._calls[ticket.id] = call
        self._drained.clear()
        if self._delivery.ordered:
            self._delivery.expect(call)
        if request.deadline is not None:
            call.timer = self._loop.call_later(max(0.0, request.deadline - now), self._expire, call)
        self._gathering.arrive()
        return call

    def streaming(self) -> list[Call]:
        """The calls whose execution has returned and goes on with them."""
        return [self._calls[ticket] for ticket in self._streaming if ticket in self._calls]

    def free(self, place: int) -> None:
        """A place of an instance is idle; it pulls its next batch."""
        self._add_idle(place)
        if len(self._calls) > len(self._running) + len(self._streaming):
            self._decide()

    def lose(self, place: int) -> None:
        """A place is gone until it is free again, with all that its instance remembered."""
        if place in self._idle:
            self._idle.remove(place)
        if self._gated is not None:
            self._gated.lose(place)
        lost = getattr(self._scheduler, "lost", None)
        try:
            if lost is not None:
                lost(place, monotonic())
            if self.codec is not None:
                self.codec.lost(place)
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)
        if lost is not None:
            self._gathering.arm()

    def suspend(self, slot: int) -> Suspension | None:
        """The execution at the slot waits for another model, and gives up its grant; None where it holds none."""
        return self._gated.suspend(slot) if self._gated is not None else None

    def done(self, work: Work) -> None:
        """A batch came back: let the place pull its next one, and answer the calls while that executes."""
        following = None if self._coded is None else self._coded.complete(work)
        if following is not None:
            self._settle(work)
            self._send(following)
            self._delivery.answer(work)
            return
        try:
            self._settle(work)
        finally:
            try:
                self.free(work.place)
            finally:
                self._delivery.answer(work)

    def lost(self, work: Work) -> None:
        """A batch died with its worker: its calls fail, those that were to follow it too, and the place stays away."""
        following = None if self._coded is None else self._coded.complete(work)
        try:
            self._settle(work)
        finally:
            self._delivery.answer(work)
        if following is not None:
            following.error, following.started_ns, following.done_ns = work.error, work.done_ns, work.done_ns
            self.lost(following)

    def take_back(self, call: Call) -> None:
        """The caller went away."""
        self._counters.cancelled(_ns_since(call.arrival, monotonic()), self._is_busy(call))
        self._forget(call)

    def fail_all(self, error: NaiadError, executing: bool = False) -> None:
        """Fail everything that waits; what executes goes on, and with `executing` nobody waits for it any more."""
        calls = list(self._calls.values()) if executing else self._waiting_calls()
        for call, each in zip(calls, errors_of(error, len(calls)), strict=True):
            self._fail_call(call, each)

    async def drained(self) -> None:
        """Return when no request waits, executes or streams, and the codec has nothing open."""
        await self._drained.wait()
        while self.codec is not None and self.codec.open:
            self._recount.clear()
            await self._recount.wait()
            await self._drained.wait()

    def retire(self) -> None:
        """The version goes out of service: what the codec knows is over."""
        if self.codec is not None:
            self._guarded(self.codec.end_all, SequenceEndReason.UNLOAD)

    def close(self) -> None:
        """End the timers. To be called when the queue is drained or given up."""
        self._alarm.close()

    @property
    def backlog(self) -> int | None:
        """How many sequences wait for a slot, None where the scheduler does not say."""
        try:
            waiting = getattr(self._scheduler, "backlog", None)
        except BaseException as error:  # noqa: BLE001 - metrics ask for this property of a plugin
            raise_interrupt(error)
            return None
        return waiting if isinstance(waiting, int) else None

    # Deciding

    def _decide_with_idle(self) -> None:
        now = monotonic()
        try:
            decision = self._scheduler.decide(now, tuple(self._idle))
            if decision.ended and self.codec is not None:
                self.codec.ended(decision.ended)
            for dispatch in decision.dispatches:
                self._dispatch(dispatch)
            for drop in decision.drops:
                self._drop(drop)
            if decision.wake_at != self._wake_at:
                self._wake_at = decision.wake_at
                self._alarm.set(decision.wake_at)
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)

    def _dispatch(self, dispatch: Dispatch) -> None:
        calls = calls_of(dispatch, self._idle, self._calls, self._running, self._streaming)
        work = self._assembler.work(dispatch, calls)
        self._counters.closed(dispatch.reason)  # first: it raises for a reason that is not hashable
        self._idle.remove(dispatch.instance)
        self._gathering.sent(len(dispatch.tickets))
        self._running.update(dispatch.tickets)
        if self.traces:
            work.traces = [call.request.trace for call in work.calls if call.request.trace is not None]
            work.reason = dispatch.reason
        self._send(work)

    def _drop(self, drop: Drop) -> None:
        for ticket in drop.tickets:
            call = self._calls.get(ticket)
            if call is not None:
                self._fail_call(call, refusal(drop, self._model), reason_of(drop), settled=True)

    def _woken(self) -> None:
        self._wake_at = None
        self._decide()

    # Settling

    def _settle(self, work: Work) -> None:
        self._running.difference_update(work.tickets)
        if work.batch.streams and work.error is None:
            streams = {call.ticket.id for call in work.calls if call.stream is not None and not call.stream.ended}
            self._streaming |= streams
            self._leave([ticket for ticket in work.tickets if ticket not in streams])
        else:
            self._leave(work.tickets)

    def _pass_on(self, stream: ResponseStream, sent: Sequence[Sent]) -> None:
        """A model has sent responses; with the last of them the request is over."""
        self._delivery.pass_on(stream, sent)
        ticket = stream.call.ticket.id
        if stream.ended and ticket in self._streaming:
            self._streaming.discard(ticket)
            self._leave((ticket,))

    def _leave(self, tickets: Sequence[int], settled: bool = False) -> None:
        left = [ticket for ticket in tickets if self._calls.pop(ticket, None) is not None]  # each leaves once
        if not settled:
            self._tell_scheduler(left, monotonic())
        if not self._calls:
            self._drained.set()

    def _fail_call(
        self, call: Call, error: NaiadError, reason: FailureReason = FailureReason.OTHER, settled: bool = False
    ) -> None:
        if not call.over:
            self._counters.failed(1, _ns_since(call.arrival, monotonic()), reason)
            self._delivery.conclude(call, error)
        self._forget(call, settled)

    def _expire(self, call: Call) -> None:
        if call.over:
            return
        executing = self._is_busy(call)
        error = expired(self._model, executing, monotonic() - call.arrival)
        self._fail_call(call, error, FailureReason.CANCELED if executing else FailureReason.REJECTED)

    def _is_busy(self, call: Call) -> bool:
        return call.ticket.id in self._running or call.ticket.id in self._streaming

    def _forget(self, call: Call, settled: bool = False) -> None:
        """Drop an ended call from the queue; one that executes leaves with its batch, or when it has streamed all."""
        if call.timer is not None:
            call.timer.cancel()
        if self._is_busy(call):
            call.tell_model()
        else:
            if self.codec is not None:
                self._guarded(self.codec.withdrawn, call)
            self._leave((call.ticket.id,), settled)
            if self._gated is not None and not self.waiting:
                self._gated.withdraw()
        self._delivery.release()

    # What the codec asks, and what it is told

    def sender(self, request: QueuedRequest, slot: int, replies: ReplyReader) -> Sender:
        """The sender of a call that executes at that slot. For any thread; see `naiad.codec.CodecQueue`."""
        return self._streams.sender((cast("Call", request),), slot, 0, replies)

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
        self._calls[ticket.id] = call
        self._gathering.arm()
        return None

    def recount(self) -> None:
        """What the codec has open may have become nothing."""
        self._recount.set()

    def _arrive_with_codec(self, ticket: Ticket) -> Drop | None:
        """As the scheduler's `arrive`, for a queue with a codec, which learns of the tickets that are taken in."""
        refused = self._scheduler.arrive(ticket)
        if refused is None and self.codec is not None:
            self.codec.arrived(ticket)
        return refused

    def _pass_on_to_codec(self, stream: ResponseStream, sent: Sequence[Sent]) -> None:
        """As `_pass_on`, for a queue with a codec, which learns of the end of each stream first."""
        call = stream.call
        last = next((each.outcome for each in sent if isinstance(each.outcome, NaiadError) or each.outcome.final), None)
        if last is not None and self.codec is not None:
            self._guarded(self.codec.streamed, call, last)
        self._pass_on(stream, sent)
        if last is not None and call.ticket.id in self._calls and not self._is_busy(call):
            self._forget(call)  # it waits to be executed again, although its model has said that all is sent

    def _guarded(self, act: Callable[..., None], *arguments: object) -> None:
        """Call the codec; what it raises is logged, because nothing may hang for it."""
        try:
            act(*arguments)
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("the batch codec of model '%s' failed", self._model)

    # A scheduler that fails

    def _start_scheduler(self) -> None:
        self._scheduler = self._make_scheduler()
        self._arrive = self._scheduler.arrive if not self._has_codec else self._arrive_with_codec
        self._delivery.ordered = bool(getattr(self._scheduler, "preserves_ordering", False))
        self._first_id = self._last_id + 1
        if self.codec is not None:  # what is under way is the old scheduler's
            self._guarded(self.codec.end_all, SequenceEndReason.CANCELLED)

    def _tell_scheduler(self, tickets: Sequence[int], now: float) -> None:
        if not tickets or tickets[0] < self._first_id:  # a scheduler that is gone took them in
            return
        try:
            if self._scheduler.settle(tickets, now):
                self._gathering.arm()
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)

    def _scheduler_failed(self, error: BaseException) -> InternalError:
        """Start a new scheduler and fail all that waited with the old one; returns what they were told."""
        raise_interrupt(error)
        _logger.error("the scheduler of model '%s' failed; it starts anew", self._model, exc_info=error)
        try:
            self._start_scheduler()
        except BaseException as again:
            raise_interrupt(again)
            _logger.exception("no new scheduler for model '%s' can be made; the old one goes on", self._model)
        failure = InternalError(f"the scheduler of model '{self._model}' failed: {describe_error(error)}")
        calls = self._waiting_calls()
        for call, each in zip(calls, errors_of(failure, len(calls) + 1)[1:], strict=True):
            self._fail_call(call, each, settled=True)
        return failure

    def _waiting_calls(self) -> list[Call]:
        busy = self._running | self._streaming
        return [call for ticket, call in self._calls.items() if ticket not in busy]


def _ns_since(start: float, now: float) -> int:
    return int((now - start) * 1e9)

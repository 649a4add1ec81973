"""The queue of one model version: the thin shell that drives a pure scheduler with the real clock."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from time import monotonic

from naiad._kernel.alarm import Alarm
from naiad._kernel.answers import AnswerReader
from naiad._kernel.assembling import Assembler, calls_of
from naiad._kernel.call import Call, Deliver
from naiad._kernel.delivery import Delivery, errors_of
from naiad._kernel.gated_slots import GatedSlots
from naiad._kernel.gathering import Gathering
from naiad._kernel.refusals import came_too_late, expired, reason_of, refusal
from naiad._kernel.statistics import FailureReason, VersionCounters
from naiad._kernel.streams import ResponseStream, Sent, Streams
from naiad._kernel.worker import Work
from naiad.errors import InternalError, NaiadError
from naiad.extend import ExecutionGate, Suspension
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.scheduler import Dispatch, Drop, Scheduler, SequenceEnd, Ticket
from naiad.types import Request

_logger = logging.getLogger("naiad.model")


class ModelQueue:
    """Tickets in, batches out; `reader` reads what models send one by one. Every method is for the event loop.

    `traces` says that there are traced requests, or have been: before the first one nobody looks for them. With a
    `gate` a slot is idle only while the gate lets it execute.
    """

    def __init__(
        self,
        reader: AnswerReader,
        make_scheduler: Callable[[], Scheduler],
        counters: VersionCounters,
        send: Callable[[Work], None],
        gate: ExecutionGate | None = None,
    ) -> None:
        model = self._model = reader.model
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
        self._assembler = Assembler(reader, Streams(reader, self._pass_on, suspend_sender))
        self._delivery = Delivery(model, counters)
        self._last_id = 0
        self._gathering = Gathering(self._loop, self._decide, self._idle)
        self._alarm = Alarm(self._loop, self._woken)
        self._wake_at: float | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._start_scheduler()

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
            refused = self._scheduler.arrive(ticket)
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
        if lost is None:
            return
        try:
            lost(place, monotonic())
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)
        self._gathering.arm()

    def suspend(self, slot: int) -> Suspension | None:
        """The execution at the slot waits for another model, and gives up its grant; None where it holds none."""
        return self._gated.suspend(slot) if self._gated is not None else None

    def done(self, work: Work) -> None:
        """A batch came back: let the place pull its next one, and answer the calls while that executes."""
        try:
            self._settle(work)
        finally:
            try:
                self.free(work.place)
            finally:
                self._delivery.answer(work)

    def lost(self, work: Work) -> None:
        """A batch died with its worker: its calls fail, and the place stays away."""
        try:
            self._settle(work)
        finally:
            self._delivery.answer(work)

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
        """Return when no request waits, executes or streams."""
        await self._drained.wait()

    def close(self) -> None:
        """End the timers. To be called when the queue is drained or given up."""
        self._alarm.close()

    # Deciding

    def _decide_with_idle(self) -> None:
        now = monotonic()
        try:
            decision = self._scheduler.decide(now, tuple(self._idle))
            if decision.ended:
                self._end_sequences(decision.ended)
            for dispatch in decision.dispatches:
                self._dispatch(dispatch)
            for drop in decision.drops:
                self._drop(drop)
            if decision.wake_at != self._wake_at:
                self._wake_at = decision.wake_at
                self._alarm.set(decision.wake_at)
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)

    def _end_sequences(self, ended: Sequence[SequenceEnd]) -> None:
        """Sequences are over; a model without any has nothing to forget."""

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
            self._leave((call.ticket.id,), settled)
            if self._gated is not None and not self.waiting:
                self._gated.withdraw()
        self._delivery.release()

    # A scheduler that fails

    def _start_scheduler(self) -> None:
        self._scheduler = self._make_scheduler()
        self._delivery.ordered = bool(getattr(self._scheduler, "preserves_ordering", False))
        self._first_id = self._last_id + 1

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

"""The queue of one model version: drives a pure scheduler with the real clock, and sends its batches to instances."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import cast

from naiad._engine.alarm import Alarm
from naiad._engine.call import Call
from naiad._engine.delivery import Delivery
from naiad._engine.execution import Execution
from naiad._engine.gated_slots import GatedSlots
from naiad._engine.refusals import came_too_late, expired, reason_of, refusal, scheduler_started_anew
from naiad._engine.responses import ResponseBuilder
from naiad._engine.streams import ResponseStream, Sent, StreamSender
from naiad.backend import Instance, Sender
from naiad.batch import Batch
from naiad.codec import BatchCodec, QueueCodec, QueuedRequest, ReplyReader
from naiad.errors import InternalError, NaiadError
from naiad.extend import ExecutionGate, Suspension
from naiad.foreign_errors import describe_error, logged, raise_interrupt
from naiad.scheduler import Dispatch, Drop, Scheduler, Ticket
from naiad.server import Deliver, Outcome
from naiad.types import Request
from naiad_config.errors import errors_of
from naiad_statistics.versions import FailureReason, VersionCounters

_logger = logging.getLogger("naiad.model")

_ROUNDS = 3
_LASTING, _LONELY = 8, 64  # after so many batches of one request each no other is waited for, and none expected


class DecisionCoalescer:
    """Asks for one decision on all that happens in a round of the event loop, unless a request comes `alone`.

    A transport may hand over in several rounds what came at once. While requests keep coming and a slot is idle, up to
    three rounds more are waited for, if one of the last eight batches joined several requests: with 16 concurrent
    requests over gRPC that makes batches of twice the size.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, decide: Callable[[], None], idle: Sequence[int]) -> None:
        """`idle` are the idle slots at any time."""
        self._loop, self._decide, self._idle = loop, decide, idle
        self._armed = False
        self._arrivals = self._seen = self._rounds = 0
        self._single = _LASTING  # batches of one request since one of several

    @property
    def alone(self) -> bool:
        """Whether to decide at once on a request that comes now: those that come after it may share the next batch."""
        return self._single >= _LONELY and len(self._idle) == 1 and not self._armed

    def arrive(self) -> None:
        """Ask for a decision at the end of this round, or later if requests keep coming."""
        self._arrivals += 1
        if self._single >= _LONELY:  # it came while another one executed, or right behind it
            self._single = _LASTING
        if not self._armed:
            self._armed, self._rounds, self._seen = True, _ROUNDS, -1
            self._loop.call_soon(self._end_round)

    def dispatched(self, requests: int) -> None:
        """A batch of so many requests was dispatched."""
        self._single = 0 if requests > 1 else self._single + 1

    def _end_round(self) -> None:
        if self._single < _LASTING and self._rounds and self._seen != self._arrivals and self._idle:
            self._seen, self._rounds = self._arrivals, self._rounds - 1
            self._loop.call_soon(self._end_round)
            return
        self._armed = False
        self._decide()


class ModelQueue:
    """Requests in, batches out; to be opened before the first. Every method is for the event loop's thread.

    `responses` reads what models send one by one. With a `gate` a slot is idle only while the gate lets it execute. A
    batch codec makes the batches and takes them back, where the scheduler brought one: it is opened for this queue, its
    `naiad.codec.CodecQueue`.
    """

    def __init__(
        self,
        responses: ResponseBuilder,
        counters: VersionCounters,
        gate: ExecutionGate | None = None,
        codec: BatchCodec | None = None,
    ) -> None:
        model = self._model = responses.model
        self.responses = responses
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, Call] = {}
        self._executing: dict[int, Call] = {}
        self._streaming: dict[int, Call] = {}
        self._idle: list[int] = []
        self._gated: GatedSlots | None = None
        self._add_idle: Callable[[int], None] = self._idle.append
        self._decide: Callable[[], None] = self._decide_with_idle
        if gate is not None:
            gated = self._gated = GatedSlots(
                gate, model, self._idle, self._decide_with_idle, self._waiting, self._executing, self.fail_all
            )
            self._add_idle, self._decide = gated.free, gated.decide
        self._batch_codec = codec
        self.codec: QueueCodec | None = None
        self._delivery = Delivery(model, counters, codec is None)
        self._first_id = self._last_id = 0
        self._coalescer = DecisionCoalescer(self._loop, self._decide, self._idle)
        self._alarm = Alarm(self._loop, self._woken)
        self._wake_at: float | None = None
        self._draining, self._recount = False, asyncio.Event()

    def open(
        self,
        make_scheduler: Callable[[], Scheduler],
        workers: Sequence[Callable[[Execution], None]],
        instruct: Callable[[int, str, Callable[[Instance], None]], None] = lambda *_: None,
        lowest_first: bool = False,
    ) -> None:
        """Take requests from now on. Raises what making the scheduler or opening the codec raises.

        `workers` take a batch each, by slot. `instruct` calls something with the instance of a slot on its own thread,
        where the instance has that member. `lowest_first` is the order of idle slots, else the longest idle is first.
        """
        self._make_scheduler = make_scheduler
        self._workers, self._lowest_first = workers, lowest_first
        self.instruct = instruct
        self._start_scheduler()
        if self._batch_codec is not None:
            self.codec = self._batch_codec.open(self)

    @property
    def waiting(self) -> int:
        """How many requests wait for an instance."""
        return len(self._waiting)

    @property
    def outstanding(self) -> int:
        """How many requests wait, execute or stream."""
        return len(self._waiting) + len(self._executing) + len(self._streaming)

    def submit(self, request: Request, batch_size: int, shape_key: Hashable, deliver: Deliver) -> Call:
        """Take a checked request in.

        Raises QueueFullError when the scheduler refuses it, DeadlineExceededError when it comes too late.
        """
        now = monotonic()
        if request.deadline is not None and request.deadline <= now:
            self._counters.rejected(0)
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
        call = Call(self.take_back, request, deliver, ticket, now)
        try:
            refused = self._arrive(ticket)
            if self.codec is not None and refused is None:
                self.codec.arrived(ticket)
        except BaseException as error:
            self._counters.failed(0)
            raise self._scheduler_failed(error) from error
        if refused is not None:
            self._counters.failed(0, reason=reason_of(refused))
            raise refusal(refused, self._model)
        self._waiting[ticket.id] = call
        if self._ordered:
            self._delivery.expect(call)
        if request.deadline is not None:
            call.timer = self._loop.call_later(max(0.0, request.deadline - now), self._expire, call)
        if not self._coalescer.alone:
            self._coalescer.arrive()
            return call
        call.deliver = partial(self._deliver_soon, call, deliver)  # its caller has no call yet
        self._decide()
        call.deliver = deliver
        return call

    def _deliver_soon(self, call: Call, deliver: Deliver, outcome: Outcome) -> None:
        call.outcome, call.deliver = outcome, deliver
        self._loop.call_soon(self._delivery.deliver_outcome, call)

    def waiting_calls(self) -> list[Call]:
        """The calls that neither execute nor stream."""
        return list(self._waiting.values())

    def streaming(self) -> list[Call]:
        """The calls whose execution has returned and goes on with them."""
        return list(self._streaming.values())

    def free(self, slot: int) -> None:
        """A slot of an instance is idle; it pulls its next batch."""
        self._add_idle(slot)
        if self._waiting:
            self._decide()

    def lose(self, slot: int) -> None:
        """A slot is gone until it is free again, with all that its instance remembered."""
        if slot in self._idle:
            self._idle.remove(slot)
        if self._gated is not None:
            self._gated.lose(slot)
        try:
            (getattr(self._scheduler, "lost", None) or (lambda *_: None))(slot, monotonic())
            if self.codec is not None:
                self.codec.lost(slot)
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)
        self._coalescer.arrive()

    def suspend(self, slot: int) -> Suspension | None:
        """The execution at the slot waits for another model, and gives up its grant; None where it holds none."""
        return self._gated.suspend(slot) if self._gated is not None else None

    def done(self, execution: Execution) -> None:
        """A batch came back: the slot takes the one that follows, or pulls one; the calls are answered meanwhile."""
        try:
            self._settle_execution(execution)
        finally:
            try:
                if execution.following is None:
                    self.free(execution.slot)
                else:
                    self._workers[execution.slot](execution.following)
            finally:
                self._delivery.answer(execution)

    def lost(self, execution: Execution) -> None:
        """A batch died with its worker: its calls fail, those that were to follow it too, and the slot stays away."""
        try:
            self._settle_execution(execution)
        finally:
            self._delivery.answer(execution)
        if (following := execution.following) is not None:
            following.error = execution.error
            following.started_ns = following.done_ns = execution.done_ns
            self.lost(following)

    def take_back(self, call: Call) -> None:
        """The caller of a request has gone."""
        self._counters.cancelled(int((monotonic() - call.arrival) * 1e9), self._is_busy(call))
        self._forget(call)

    def fail_all(self, error: NaiadError, executing: bool = False) -> None:
        """Fail everything that waits; what executes goes on, and with `executing` fails too."""
        calls = list(self._waiting.values())
        if executing:
            calls = [*self._streaming.values(), *self._executing.values(), *calls]
        for call, each in zip(calls, errors_of(error, len(calls)), strict=True):
            self._fail_call(call, each)

    async def drained(self) -> None:
        """Return when no request waits, executes or streams, and none is expected."""
        self._draining = True
        while self.outstanding or (self.codec is not None and self.codec.open):
            self._recount.clear()
            await self._recount.wait()

    def retire(self) -> None:
        """The version goes out of service: what the codec knows is over."""
        self._end_all(unloading=True)

    def close(self) -> None:
        """End the timers. To be called when the queue is drained or given up."""
        self._alarm.close()

    @property
    def backlog(self) -> int | None:
        """How many sequences wait for a slot, None where the scheduler does not say."""
        with logged(f"reading the backlog of the scheduler of model '{self._model}'", model=self._model):
            waiting = getattr(self._scheduler, "backlog", None)
            return waiting if isinstance(waiting, int) else None
        return None

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
            refused = self._arrive(ticket)
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

    # Deciding

    def _decide_with_idle(self) -> None:
        now = monotonic()
        try:
            decision = self._scheduler.decide(now, tuple(sorted(self._idle) if self._lowest_first else self._idle))
            if decision.ended and self.codec is not None:
                self.codec.ended(decision.ended)
            if decision.wake_at != self._wake_at:  # before a caller that is answered sends more
                self._wake_at = decision.wake_at
                self._alarm.set(decision.wake_at)
            for dispatch in decision.dispatches:
                self._dispatch(dispatch)
            for drop in decision.drops:
                self._drop(drop)
        except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)

    def _dispatch(self, dispatch: Dispatch) -> None:
        slot, tickets = dispatch.instance, dispatch.tickets
        unique = set(tickets)
        if slot not in self._idle or not unique or len(unique) < len(tickets) or not unique <= self._waiting.keys():
            raise RuntimeError(
                f"it sent the tickets {list(tickets)} to instance {slot}; "
                "every ticket must wait and be named once, and the instance must be idle"
            )
        execution = self._build(dispatch)
        self._counters.by_slot[slot].closed(dispatch.reason)  # raises for a reason that is not hashable
        self._idle.remove(slot)
        self._coalescer.dispatched(len(tickets))
        for ticket in tickets:
            call = self._executing[ticket] = self._waiting.pop(ticket)
            if self._orders_dispatches:
                self._delivery.expect(call)
        self._workers[slot](execution)

    def _build(self, dispatch: Dispatch) -> Execution:
        if self.codec is not None:
            coded = self._build_coded(self.codec, dispatch)
            if coded is not None:
                return coded
        calls, requests, sizes, traces = [], [], [], []
        for ticket in dispatch.tickets:
            call = self._waiting[ticket]
            request = call.request
            calls.append(call)
            requests.append(request)
            sizes.append(call.ticket.batch_size)
            if request.trace is not None:
                traces.append(request.trace)
        open_sender = partial(self._open_sender, calls, dispatch.instance)
        batch = Batch(requests, sizes, open_sender, self.responses.layout)
        return Execution(dispatch.instance, dispatch.tickets, calls, batch, dispatch.reason, traces)

    def _build_coded(self, codec: QueueCodec, dispatch: Dispatch) -> Execution | None:
        """The first of the codec's executions, which knows the others; None where the codec leaves the batch to us."""
        calls = [self._waiting[ticket] for ticket in dispatch.tickets]
        first: Execution | None = None
        for planned in reversed(codec.build(dispatch, calls)):
            tickets = [request.ticket.id for request in planned.requests]
            traces = [each.request.trace for each in planned.requests if each.request.trace is not None]
            requests, batch = planned.requests, planned.batch
            first = Execution(dispatch.instance, tickets, requests, batch, dispatch.reason, traces, first)
        return first

    def _drop(self, drop: Drop) -> None:
        for ticket in drop.tickets:
            call = self._waiting.get(ticket)
            if call is not None:
                self._fail_call(call, refusal(drop, self._model), reason_of(drop), settled=True)

    def _woken(self) -> None:
        self._wake_at = None
        self._decide()

    # Settling

    def _settle_execution(self, execution: Execution) -> None:
        for call in execution.calls if execution.error is not None else ():
            if call.stream is not None:  # what was sent comes before the error
                call.stream.flush()
        if self.codec is not None:
            self._take_back_batch(self.codec, execution)
        tickets = execution.tickets
        if execution.error is None:
            for call in execution.calls:
                if call.stream is not None and not call.stream.ended:
                    self._streaming[call.ticket.id] = call
                    tickets = [ticket for ticket in tickets if ticket != call.ticket.id]
        for ticket in execution.tickets:
            self._executing.pop(ticket, None)
        self._settle(tickets)

    def _take_back_batch(self, codec: QueueCodec, execution: Execution) -> None:
        """Let the codec take an execution back; a fault of the codec fails the execution."""
        try:
            completion = codec.completed(execution.batch, execution.outcomes, execution.error)
            if completion is not None:
                execution.calls, execution.outcomes = completion.requests, completion.outcomes
                for requeued in completion.requeued if execution.traces else ():
                    if requeued.request.trace is not None:
                        requeued.request.trace.executed(execution.started_ns, execution.phases())
        except BaseException as error:
            raise_interrupt(error)
            _logger.exception("taking back a batch of model '%s' failed", self._model)
            execution.error = InternalError(f"the answer of model '{self._model}' was lost: {describe_error(error)}")

    def _open_sender(self, calls: Sequence[Call], slot: int, index: int, replies: ReplyReader | None = None) -> Sender:
        """A sender for the call of that index, whose replies `replies` reads, if need be. For any thread.

        Raises InternalError when it was taken before.
        """
        call, suspend = calls[index], None if self._gated is None else self._gated.suspend_sender
        if call.stream is not None:
            raise InternalError("the response sender of this request was taken before")
        call.stream = ResponseStream(call, slot, replies or self.responses, self._loop, self._pass_on, suspend)
        return StreamSender(call.stream)

    def _pass_on(self, stream: ResponseStream, sent: Sequence[Sent]) -> None:
        """A model has sent responses; with the last of them the request is over."""
        call = stream.call
        if self.codec is not None:  # which has to know the end of a stream before its caller
            ends = (each.outcome for each in sent if isinstance(each.outcome, NaiadError) or each.outcome.final)
            last = next(ends, None)
            if last is not None:
                self._guarded(self.codec.streamed, call, last)
        self._delivery.pass_on(stream, sent)
        if stream.ended and self._streaming.pop(call.ticket.id, None) is not None:
            self._settle((call.ticket.id,))
        elif stream.ended and call.ticket.id in self._waiting:
            self._forget(call)  # it waits to be executed again, although its model has said that all is sent

    def _settle(self, tickets: Sequence[int]) -> None:
        """These tickets are over; one that the scheduler refused or dropped it knows to be."""
        if tickets and tickets[0] >= self._first_id:  # else a scheduler that is gone took them in
            try:
                if self._scheduler.settle(tickets, monotonic()):
                    self._coalescer.arrive()
            except BaseException as error:  # noqa: BLE001 - a scheduler plugin may raise anything
                self._scheduler_failed(error)
        if self._draining and not self.outstanding:
            self._recount.set()

    def _fail_call(
        self, call: Call, error: NaiadError, reason: FailureReason = FailureReason.OTHER, settled: bool = False
    ) -> None:
        if not call.over:
            since_ns = int((monotonic() - call.arrival) * 1e9)
            call.queue_ns = 0 if self._is_busy(call) else since_ns
            self._counters.failed(since_ns, reason=reason)
            self._delivery.conclude(call, error)
        self._forget(call, settled)

    def _expire(self, call: Call) -> None:
        if call.over:
            return
        executing = self._is_busy(call)
        error = expired(self._model, executing, monotonic() - call.arrival)
        self._fail_call(call, error, FailureReason.CANCELED if executing else FailureReason.REJECTED)

    def _is_busy(self, call: Call) -> bool:
        return call.ticket.id in self._executing or call.ticket.id in self._streaming

    def _forget(self, call: Call, settled: bool = False) -> None:
        """Drop an ended call from the queue; one that executes leaves with its batch, or when it has streamed all."""
        if call.timer is not None:
            call.timer.cancel()
        if (busy := self._is_busy(call)) or call.stream is not None:
            call.notify_model()  # one that was rescheduled may still hold its sender
        if not busy:
            if self.codec is not None:
                self._guarded(self.codec.withdrawn, call)
            ticket = call.ticket.id
            if self._waiting.pop(ticket, None) is not None:
                self._settle((ticket,) if not settled else ())
            if self._gated is not None and not self.waiting:
                self._gated.withdraw()
        self._delivery.release()

    # A scheduler that fails

    def _start_scheduler(self) -> None:
        self._scheduler = self._make_scheduler()
        self._arrive = self._scheduler.arrive
        self._ordered = bool(getattr(self._scheduler, "preserves_ordering", False))
        self._orders_dispatches = bool(getattr(self._scheduler, "orders_dispatches", False))
        self._first_id = self._last_id + 1
        self._end_all(unloading=False)  # what is under way is the old scheduler's

    def _end_all(self, unloading: bool) -> None:
        if self.codec is not None:
            self._guarded(self.codec.end_all, unloading)

    def _guarded(self, act: Callable[..., None], *arguments: object) -> None:
        """Call the codec; what it raises is logged, because nothing may hang for it."""
        with logged(f"the batch codec of model '{self._model}'", model=self._model):
            act(*arguments)

    def _scheduler_failed(self, error: BaseException) -> InternalError:
        """Start a new scheduler and fail all that waited with the old one; returns their error."""
        raise_interrupt(error)
        _logger.error("the scheduler of model '%s' failed; it starts anew", self._model, exc_info=error)
        try:
            self._start_scheduler()
        except BaseException as again:
            raise_interrupt(again)
            _logger.exception("no new scheduler for model '%s' can be made; the old one goes on", self._model)
        failure = InternalError(f"the scheduler of model '{self._model}' failed: {describe_error(error)}")
        calls = list(self._waiting.values())
        for call, each in zip(calls, errors_of(failure, len(calls) + 1)[1:], strict=True):
            self._fail_call(call, each, settled=True)
        return failure

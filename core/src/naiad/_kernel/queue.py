"""The queue of one model version: the thin shell that drives a pure scheduler with the real clock."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from time import monotonic

from naiad._kernel.alarm import Alarm
from naiad._kernel.call import Call, Deliver
from naiad._kernel.delivery import Delivery
from naiad._kernel.statistics import VersionCounters
from naiad._kernel.telling import told
from naiad._kernel.worker import Work
from naiad.batch import Batch
from naiad.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NaiadError,
    QueueFullError,
    QueueTimeoutError,
)
from naiad.scheduler import Dispatch, Drop, DropReason, Scheduler, Ticket
from naiad.types import Request

_logger = logging.getLogger("naiad.model")

_FAR = 0.02
"""Seconds from which on the loop's own timers, exact to a millisecond, are good enough."""


class ModelQueue:
    """Tickets in, batches out. Every method runs on the event loop's thread."""

    def __init__(
        self,
        model: str,
        make_scheduler: Callable[[], Scheduler],
        counters: VersionCounters,
        send: Callable[[Work], None],
    ) -> None:
        self._model = model
        self._make_scheduler = make_scheduler
        self._counters = counters
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, Call] = {}
        self._running: set[int] = set()
        self._idle: list[int] = []
        self._delivery = Delivery(model, counters)
        self._last_id = 0
        self._armed = False
        self._alarm = Alarm(self._loop, self._woken)
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at: float | None = None
        self._empty: list[asyncio.Future[None]] = []
        self._start_scheduler()

    @property
    def outstanding(self) -> int:
        """How many requests wait or execute."""
        return len(self._calls)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._calls) - len(self._running)

    def submit(self, request: Request, batch_size: int, shape_key: Hashable, deliver: Deliver) -> Call:
        """Take a checked request in.

        Raises QueueFullError when the scheduler refuses it, DeadlineExceededError when it comes too late.
        """
        now = monotonic()
        if request.deadline is not None and request.deadline <= now:
            self._counters.failed(1, 0)
            raise DeadlineExceededError(f"the deadline of the request to model '{self._model}' had passed on arrival")
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
        except Exception as error:
            self._counters.failed(1, 0)
            raise self._scheduler_failed(error) from error
        if refused is not None:
            self._counters.failed(1, 0)
            raise self._refusal(refused)
        self._calls[ticket.id] = call
        self._delivery.expect(call)
        if request.deadline is not None:
            call.timer = self._loop.call_later(max(0.0, request.deadline - now), self._expire, call)
        if not self._armed:
            self._armed = True
            self._loop.call_soon(self._decide)
        return call

    def free(self, place: int) -> None:
        """A place of an instance is idle; it pulls its next batch."""
        self._idle.append(place)
        if len(self._calls) > len(self._running):
            self._decide()

    def lose(self, place: int) -> None:
        """A place is gone until it is free again."""
        if place in self._idle:
            self._idle.remove(place)

    def done(self, work: Work) -> None:
        """A batch came back: let the place pull its next one, and answer the calls while that executes."""
        self._settle(work)
        self.free(work.place)
        self._delivery.answer(work)
        self._tell_drained()

    def lost(self, work: Work) -> None:
        """A batch died with its worker: its calls fail, and the place stays away."""
        self._settle(work)
        self._delivery.answer(work)
        self._tell_drained()

    def take_back(self, call: Call) -> None:
        """The caller went away."""
        self._counters.failed(1, _ns_since(call.ticket.arrival, monotonic()))
        self._forget(call)

    def fail_all(self, error: NaiadError, executing: bool = False) -> None:
        """Fail everything that waits; what executes goes on, and with `executing` nobody waits for it any more."""
        for call in list(self._calls.values()) if executing else self._waiting_calls():
            self._fail_call(call, error)

    async def drained(self) -> None:
        """Return when no request waits or executes."""
        if self._calls:
            empty = self._loop.create_future()
            self._empty.append(empty)
            await empty

    def close(self) -> None:
        """End the timers. To be called when the queue is drained or given up."""
        self._wake_later(None, 0.0)
        self._alarm.close()

    # Deciding

    def _decide(self) -> None:
        self._armed = False
        now = monotonic()
        try:
            decision = self._scheduler.decide(now, self._idle)
            for dispatch in decision.dispatches:
                self._dispatch(dispatch)
            for drop in decision.drops:
                self._drop(drop)
            if decision.wake_at != self._wake_at:
                self._wake_later(decision.wake_at, now)
        except Exception as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)

    def _dispatch(self, dispatch: Dispatch) -> None:
        tickets = dispatch.tickets
        if not self._can_go(dispatch):
            raise RuntimeError(
                f"it sent the tickets {list(tickets)} to instance {dispatch.instance}; "
                "every ticket must wait and be named once, and the instance must be idle"
            )
        calls = [self._calls[ticket] for ticket in tickets]
        self._idle.remove(dispatch.instance)
        self._running.update(tickets)
        self._counters.closed(dispatch.reason)
        batch = Batch([call.request for call in calls], [call.ticket.batch_size for call in calls])
        self._send(Work(dispatch.instance, tickets, calls, batch))

    def _can_go(self, dispatch: Dispatch) -> bool:
        tickets = dispatch.tickets
        return (
            dispatch.instance in self._idle
            and len(tickets) > 0
            and all(map(self._calls.__contains__, tickets))
            and self._running.isdisjoint(tickets)
            and (len(tickets) == 1 or len(set(tickets)) == len(tickets))
        )

    def _drop(self, drop: Drop) -> None:
        error = self._refusal(drop)
        for ticket in drop.tickets:
            call = self._calls.get(ticket)
            if call is not None:
                self._fail_call(call, error, settled=True)

    def _refusal(self, drop: Drop) -> NaiadError:
        if drop.reason is DropReason.QUEUE_FULL:
            detail = drop.detail or "raise max_queue_size, add instances, or send less"
            return QueueFullError(f"Exceeds maximum queue size of model '{self._model}': {detail}", retry_after=1.0)
        if drop.reason is DropReason.TIMEOUT:
            detail = drop.detail or "it waited longer than its queue policy allows"
            return QueueTimeoutError(f"Request timeout expired for model '{self._model}': {detail}", retry_after=1.0)
        return InvalidArgumentError(drop.detail or f"the scheduler of model '{self._model}' refused the request")

    def _wake_later(self, at: float | None, now: float) -> None:
        self._wake_at = at
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None and at - now > _FAR:
            self._timer = self._loop.call_later(at - now, self._woken)
            at = None
        self._alarm.set(at)

    def _woken(self) -> None:
        self._wake_at = None
        self._decide()

    # Settling

    def _settle(self, work: Work) -> None:
        self._running.difference_update(work.tickets)
        for ticket in work.tickets:
            self._calls.pop(ticket, None)
        self._tell_scheduler(work.tickets, monotonic())

    def _fail_call(self, call: Call, error: NaiadError, settled: bool = False) -> None:
        if not call.over:
            self._counters.failed(1, _ns_since(call.ticket.arrival, monotonic()))
            self._delivery.conclude(call, error)
        self._forget(call, settled)

    def _expire(self, call: Call) -> None:
        if call.over:
            return
        late = monotonic() - call.ticket.arrival
        state = "executing" if call.ticket.id in self._running else "waiting"
        error = DeadlineExceededError(
            f"the deadline of the request to model '{self._model}' passed after {late:.3f} s, while it was {state}"
        )
        self._fail_call(call, error)

    def _forget(self, call: Call, settled: bool = False) -> None:
        """Drop an ended call from the queue; one that executes leaves with its batch."""
        if call.timer is not None:
            call.timer.cancel()
        ticket = call.ticket.id
        if ticket not in self._running:
            self._calls.pop(ticket, None)
            if not settled:
                self._tell_scheduler((ticket,), monotonic())
            self._tell_drained()
        self._delivery.release()

    def _tell_drained(self) -> None:
        if self._calls:
            return
        for empty in self._empty:
            if not empty.done():
                empty.set_result(None)
        self._empty.clear()

    # A scheduler that fails

    def _start_scheduler(self) -> None:
        self._scheduler = self._make_scheduler()
        self._delivery.ordered = bool(getattr(self._scheduler, "preserves_ordering", False))
        self._first_id = self._last_id + 1

    def _tell_scheduler(self, tickets: Sequence[int], now: float) -> None:
        if tickets[0] < self._first_id:  # a scheduler that is gone took them in
            return
        try:
            self._scheduler.settle(tickets, now)
        except Exception as error:  # noqa: BLE001 - a scheduler plugin may raise anything; nothing may hang for it
            self._scheduler_failed(error)

    def _scheduler_failed(self, error: Exception) -> InternalError:
        """Start a new scheduler and fail all that waited with the old one; returns what they were told."""
        _logger.error("the scheduler of model '%s' failed; it starts anew", self._model, exc_info=error)
        try:
            self._start_scheduler()
        except Exception:
            _logger.exception("no new scheduler for model '%s' can be made; the old one goes on", self._model)
        failure = InternalError(f"the scheduler of model '{self._model}' failed: {told(error)}")
        for call in self._waiting_calls():
            self._fail_call(call, failure, settled=True)
        return failure

    def _waiting_calls(self) -> list[Call]:
        return [call for ticket, call in self._calls.items() if ticket not in self._running]


def _ns_since(start: float, now: float) -> int:
    return int((now - start) * 1e9)

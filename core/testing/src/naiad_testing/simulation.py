"""Simulator of schedulers: drives one through a history of arrivals on a virtual clock, and logs all events.

The kernel drives schedulers the same way: the scheduler gets everything that happens at one instant, then one decision
is asked for, if a request came, an instance is free for one that waits, or the scheduler wants it. Nothing here reads a
clock or draws a number, so the same input gives the same log.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence

from naiad.scheduler import Dispatch, Drop, Scheduler, Ticket
from naiad_testing.history import (
    Arrival,
    Crash,
    Departed,
    Dropped,
    Ended,
    Entry,
    Log,
    Lost,
    Sent,
    SequenceOver,
    Streamed,
    Waited,
)

ServiceTime = float | Callable[[int], float]
"""Seconds that a batch takes, or a function from its size to them."""

_CRASH, _END, _STREAMED, _BACK, _LEAVE, _ASK = range(6)
_VAIN_WAKES = 1000


class ContractBroken(AssertionError):  # noqa: N818 - reads as what it says
    """A scheduler did what the contract forbids."""


def simulate(
    scheduler: Scheduler,
    arrivals: Iterable[Arrival],
    service_time: ServiceTime,
    instances: int = 1,
    asks: Iterable[float] = (),
    crashes: Iterable[Crash] = (),
) -> Log:
    """Send the arrivals through the scheduler, in the order of their times, until all is quiet.

    `asks` are further times at which to ask for a decision, without a reason. Raises ContractBroken when the scheduler
    names a ticket that does not wait, an instance that is not idle, rows that do not hold the tickets, or a wait that
    does not lie in the future.
    """
    ordered = sorted(arrivals, key=lambda arrival: arrival.time)
    return _Simulation(scheduler, ordered, service_time, instances).run(asks, crashes)


class _Simulation:
    def __init__(
        self, scheduler: Scheduler, arrivals: Sequence[Arrival], service_time: ServiceTime, instances: int
    ) -> None:
        self._scheduler = scheduler
        self._arrivals = arrivals
        self._service_time = service_time if callable(service_time) else lambda size: service_time
        self._instances = instances
        self._now = 0.0
        self._arrived = 0
        self._origins: list[int] = []  # of every ticket, the number of its arrival
        self._returns: dict[int, int] = {}  # by ticket, how often its request is still to come back
        self._waiting: dict[int, Ticket] = {}
        self._idle = list(range(instances))
        self._batches = [0] * instances  # how many an instance was given, and how often it died
        self._running: dict[int, tuple[int, ...]] = {}
        # (time, rank, number, batch): what ends before callers that leave; the number is an instance or a ticket
        self._events: list[tuple[float, int, int, float]] = []
        self._wake_at: float | None = None
        self._decision_due = False
        self._vain_wakes = 0
        self._entries: list[Entry] = []

    def run(self, asks: Iterable[float], crashes: Iterable[Crash]) -> Log:
        for time in asks:
            self._plan(time, _ASK, 0)
        for crash in crashes:
            self._plan(crash.time, _CRASH, crash.instance, crash.seconds)
        while (instant := self._next_instant()) is not None:
            self._now = instant
            self._decision_due = self._wake_at is not None and self._wake_at <= instant
            self._take_events()
            self._take_arrivals()
            if self._decision_due:
                done = len(self._entries)
                self._decide()
                self._count_vain_wakes(self._entries[done:])
        returned = len(self._origins) > len(self._arrivals)
        origins = tuple(self._origins) if returned else ()
        return Log(tuple(self._arrivals), tuple(self._entries), self._instances, tuple(self._waiting), origins)

    def _plan(self, time: float, rank: int, number: int, more: float = 0) -> None:
        heapq.heappush(self._events, (max(self._now, time), rank, number, more))

    def _next_instant(self) -> float | None:
        times = [] if self._wake_at is None else [self._wake_at]
        if self._events:
            times.append(self._events[0][0])
        if self._arrived < len(self._arrivals):
            times.append(self._arrivals[self._arrived].time)
        return min(times, default=None)

    # What happens

    def _take_events(self) -> None:
        while self._events and self._events[0][0] <= self._now:
            _, rank, number, more = heapq.heappop(self._events)
            if rank == _END:
                if more == self._batches[number]:  # or else it has died since
                    self._end(number)
            elif rank == _STREAMED:
                self._entries.append(Streamed(self._now, number))
                self._settle((number,))
            elif rank == _CRASH:
                self._crash(number, more)
            elif rank == _BACK:
                if more == self._batches[number]:
                    self._free(number)
            elif rank == _ASK:
                self._decision_due = True
            elif self._waiting.pop(number, None) is not None:
                self._entries.append(Departed(self._now, number))
                self._settle((number,))

    def _end(self, instance: int) -> None:
        tickets = self._running.pop(instance)
        self._entries.append(Ended(self._now, instance, tickets))
        over = []
        for ticket in tickets:
            arrival = self._arrivals[self._origins[ticket - 1] - 1]
            returns = self._returns.pop(ticket)
            if returns:
                self._arrive(self._origins[ticket - 1], arrival, returns - 1, continues=ticket)
            if arrival.streams and not returns:
                self._plan(self._now + arrival.streams, _STREAMED, ticket)
            else:
                over.append(ticket)
        if over:
            self._settle(tuple(over))
        self._free(instance)

    def _crash(self, instance: int, seconds: float) -> None:
        tickets = self._running.pop(instance, ())
        self._entries.append(Lost(self._now, instance, tickets))
        self._batches[instance] += 1
        if instance in self._idle:
            self._idle.remove(instance)
        if tickets:
            self._settle(tickets)
        lost = getattr(self._scheduler, "lost", None)
        if lost is not None:
            lost(instance, self._now)
        self._decision_due = True
        self._plan(self._now + seconds, _BACK, instance, self._batches[instance])

    def _free(self, instance: int) -> None:
        self._idle.append(instance)
        self._decision_due = self._decision_due or bool(self._waiting)

    def _settle(self, tickets: Sequence[int]) -> None:
        if self._scheduler.settle(tickets, self._now):
            self._decision_due = True

    def _take_arrivals(self) -> None:
        while self._arrived < len(self._arrivals) and self._arrivals[self._arrived].time <= self._now:
            self._arrived += 1
            arrival = self._arrivals[self._arrived - 1]
            self._arrive(self._arrived, arrival, arrival.returns)

    def _arrive(self, origin: int, arrival: Arrival, returns: int, continues: int = 0) -> None:
        self._origins.append(origin)
        ticket = _ticket(len(self._origins), self._now, arrival, continues)
        self._returns[ticket.id] = returns
        self._decision_due = True
        refusal = self._scheduler.arrive(ticket)
        if refusal is None:
            self._waiting[ticket.id] = ticket
            if arrival.leaves is not None:
                self._plan(arrival.leaves, _LEAVE, ticket.id)
            return
        if refusal.tickets != (ticket.id,):
            self._broken(f"arrive({ticket.id}) refused the tickets {refusal.tickets}; it may refuse {ticket.id} only")
        self._entries.append(Dropped(self._now, refusal.tickets, refusal.reason, refusal.detail))

    # What the scheduler decides

    def _decide(self) -> None:
        decision = self._scheduler.decide(self._now, tuple(self._idle))
        for drop in decision.drops:
            self._drop(drop)
        for end in decision.ended:
            self._entries.append(SequenceOver(self._now, end.instance, end.sequence, end.reason))
        for dispatch in decision.dispatches:
            self._dispatch(dispatch)
        self._wake_at = decision.wake_at
        if decision.wake_at is not None:
            if decision.wake_at <= self._now:
                self._broken(f"it asks to be woken at {decision.wake_at!r}, which does not lie in the future")
            self._entries.append(Waited(self._now, decision.wake_at))

    def _count_vain_wakes(self, done: Sequence[Entry]) -> None:
        vain = all(isinstance(entry, Waited) for entry in done)
        self._vain_wakes = self._vain_wakes + 1 if vain and done else 0
        if self._vain_wakes > _VAIN_WAKES + len(self._arrivals):
            self._broken(f"it was woken {self._vain_wakes} times in a row and did nothing")

    def _drop(self, drop: Drop) -> None:
        self._take_waiting(drop.tickets, "dropped")
        self._entries.append(Dropped(self._now, drop.tickets, drop.reason, drop.detail))

    def _dispatch(self, dispatch: Dispatch) -> None:
        if dispatch.instance not in self._idle:
            self._broken(f"it sent {dispatch.tickets} to instance {dispatch.instance}, which is not idle")
        if not dispatch.tickets:
            self._broken(f"it sent an empty batch to instance {dispatch.instance}")
        if dispatch.rows and tuple(row.ticket for row in dispatch.rows if row.ticket) != dispatch.tickets:
            self._broken(f"the rows {dispatch.rows} do not hold the tickets {dispatch.tickets} in their order")
        size = sum(ticket.batch_size for ticket in self._take_waiting(dispatch.tickets, "sent"))
        self._idle.remove(dispatch.instance)
        self._running[dispatch.instance] = dispatch.tickets
        self._batches[dispatch.instance] += 1
        reason, rows = str(dispatch.reason), dispatch.rows
        self._entries.append(Sent(self._now, dispatch.instance, dispatch.tickets, reason, size, rows))
        end = self._now + self._service_time(size)
        self._plan(end, _END, dispatch.instance, self._batches[dispatch.instance])

    def _take_waiting(self, tickets: Sequence[int], done: str) -> list[Ticket]:
        taken = []
        for ticket in tickets:
            if ticket not in self._waiting:
                self._broken(f"it {done} ticket {ticket}, which does not wait")
            taken.append(self._waiting.pop(ticket))
        return taken

    def _broken(self, what: str) -> None:
        raise ContractBroken(f"at {self._now!r} s the scheduler broke its contract: {what}")


def _ticket(number: int, now: float, arrival: Arrival, continues: int) -> Ticket:
    return Ticket(
        id=number,
        arrival=now if continues else arrival.time,
        batch_size=arrival.batch_size,
        shape_key=arrival.shape_key,
        priority=arrival.priority,
        timeout=arrival.timeout,
        sequence_id=arrival.sequence_id,
        sequence_start=arrival.sequence_start and not continues,
        sequence_end=arrival.sequence_end and not continues,
        continues=continues,
    )

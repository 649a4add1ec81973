"""Drives a scheduler through a history of arrivals on a virtual clock and writes down all that happens.

The kernel drives schedulers the same way: everything that happens at one instant is told, then one decision is asked
for. Nothing here reads a clock or draws a number, so the same input gives the same log.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence

from naiad.scheduler import Dispatch, Drop, Scheduler, Ticket
from naiad.testing.history import Arrival, Dropped, Ended, Entry, Left, Log, Sent, Waited

ServiceTime = float | Callable[[int], float]
"""Seconds that a batch takes, or a function from its size to them."""

_END, _LEAVE, _ASK = 0, 1, 2
_VAIN_WAKES = 1000


class ContractBroken(AssertionError):  # noqa: N818 - reads as what it says
    """A scheduler did what the contract forbids."""


def simulate(
    scheduler: Scheduler,
    arrivals: Iterable[Arrival],
    service_time: ServiceTime,
    instances: int = 1,
    asks: Iterable[float] = (),
) -> Log:
    """Send the arrivals through the scheduler, in the order of their times, until all is quiet.

    `asks` are further times at which to ask for a decision, without a reason. Raises ContractBroken when the scheduler
    names a ticket that does not wait, an instance that is not idle, or a wait that does not lie in the future.
    """
    return _Simulation(scheduler, sorted(arrivals, key=lambda arrival: arrival.time), service_time, instances).run(asks)


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
        self._waiting: dict[int, Ticket] = {}
        self._idle = list(range(instances))
        self._running: dict[int, tuple[int, ...]] = {}
        # (time, rank, number): ends of batches before callers that leave; the number is an instance or a ticket
        self._events: list[tuple[float, int, int]] = []
        self._wake_at: float | None = None
        self._vain_wakes = 0
        self._entries: list[Entry] = []

    def run(self, asks: Iterable[float]) -> Log:
        for time in asks:
            heapq.heappush(self._events, (time, _ASK, 0))
        while (instant := self._next_instant()) is not None:
            self._now = instant
            self._take_events()
            self._take_arrivals()
            done = len(self._entries)
            self._decide()
            self._count_vain_wakes(self._entries[done:])
        return Log(tuple(self._arrivals), tuple(self._entries), self._instances, tuple(self._waiting))

    def _next_instant(self) -> float | None:
        times = [] if self._wake_at is None else [self._wake_at]
        if self._events:
            times.append(self._events[0][0])
        if self._arrived < len(self._arrivals):
            times.append(self._arrivals[self._arrived].time)
        return min(times, default=None)

    def _take_events(self) -> None:
        while self._events and self._events[0][0] <= self._now:
            _, rank, number = heapq.heappop(self._events)
            if rank == _END:
                tickets = self._running.pop(number)
                self._entries.append(Ended(self._now, number, tickets))
                self._scheduler.settle(tickets, self._now)
                self._idle.append(number)
            elif rank == _LEAVE and self._waiting.pop(number, None) is not None:
                self._entries.append(Left(self._now, number))
                self._scheduler.settle((number,), self._now)

    def _take_arrivals(self) -> None:
        while self._arrived < len(self._arrivals) and self._arrivals[self._arrived].time <= self._now:
            arrival = self._arrivals[self._arrived]
            self._arrived += 1
            ticket = _ticket(self._arrived, arrival)
            refusal = self._scheduler.arrive(ticket)
            if refusal is None:
                self._waiting[ticket.id] = ticket
                if arrival.leaves is not None:
                    heapq.heappush(self._events, (max(self._now, arrival.leaves), _LEAVE, ticket.id))
                continue
            if refusal.tickets != (ticket.id,):
                self._broken(
                    f"arrive({ticket.id}) refused the tickets {refusal.tickets}; it may refuse {ticket.id} only"
                )
            self._entries.append(Dropped(self._now, refusal.tickets, refusal.reason, refusal.detail))

    def _decide(self) -> None:
        decision = self._scheduler.decide(self._now, tuple(self._idle))
        for drop in decision.drops:
            self._drop(drop)
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
        size = sum(ticket.batch_size for ticket in self._take_waiting(dispatch.tickets, "sent"))
        self._idle.remove(dispatch.instance)
        self._running[dispatch.instance] = dispatch.tickets
        self._entries.append(Sent(self._now, dispatch.instance, dispatch.tickets, str(dispatch.reason), size))
        heapq.heappush(self._events, (self._now + self._service_time(size), _END, dispatch.instance))

    def _take_waiting(self, tickets: Sequence[int], done: str) -> list[Ticket]:
        taken = []
        for ticket in tickets:
            if ticket not in self._waiting:
                self._broken(f"it {done} ticket {ticket}, which does not wait")
            taken.append(self._waiting.pop(ticket))
        return taken

    def _broken(self, what: str) -> None:
        raise ContractBroken(f"at {self._now!r} s the scheduler broke its contract: {what}")


def _ticket(number: int, arrival: Arrival) -> Ticket:
    return Ticket(
        id=number,
        arrival=arrival.time,
        batch_size=arrival.batch_size,
        shape_key=arrival.shape_key,
        priority=arrival.priority,
        timeout=arrival.timeout,
        sequence_id=arrival.sequence_id,
        sequence_start=arrival.sequence_start,
        sequence_end=arrival.sequence_end,
    )

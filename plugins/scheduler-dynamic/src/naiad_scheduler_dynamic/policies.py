"""Queue with priority levels and queue policies: order, refusals and timeouts of tickets."""

from bisect import insort
from collections import deque
from collections.abc import Sequence

from naiad.scheduler import Drop, Ticket
from naiad_config import ModelDynamicBatching, ModelQueuePolicy
from naiad_scheduler_dynamic.levels import Level
from naiad_scheduler_dynamic.timeouts import Timeouts, has_too_many_gone


class PolicyQueue:
    """Tickets by level, 1 first; in a level those within their timeout first; each kind in the order of arrival.

    A ticket waits until `leave` or `remove` names it, also while it is popped; where it stood it is passed over when it
    comes up, so that nothing is searched. `reordered` says that a ticket has come to stand before one that is popped:
    put the popped ones back, or the order is lost.
    """

    __slots__ = ("_homes", "_late", "_levels", "_queued", "_reach", "_settings", "_timeouts", "reordered")

    def __init__(self, settings: ModelDynamicBatching) -> None:
        self._settings = settings
        self._homes: dict[int, Level] = {}  # the level of every ticket that waits
        self._late: set[int] = set()  # those past a timeout that delays them
        self._levels: dict[int, Level] = {}  # made when first used: a configuration may allow millions
        self._queued: list[Level] = []  # every level that has a ticket in a queue, the highest priority first
        self._timeouts: dict[ModelQueuePolicy, Timeouts] = {}  # no more than the configuration has policies
        self._reach = (0, False)  # where the last popped ticket stood: its level's number, whether it was late
        self.reordered = False

    def push(self, ticket: Ticket) -> Drop | None:
        """Put a ticket at the end of its level; refuse it when that is full."""
        level = self._level_of(ticket)
        refusal = level.refusal(ticket) if level.limit else None
        if refusal is not None:
            return refusal
        self._homes[ticket.id] = level
        level.waiting += 1
        level.fresh.append(ticket)
        if not level.queued:
            self._enqueue(level)
        if has_too_many_gone(level.fresh, self._homes):
            level.fresh = self._without_gone(level.fresh)
        if level.timeouts is not None:
            level.timeouts.add(ticket)
        if (level.number, False) < self._reach:
            self.reordered = True
        return None

    def pop(self) -> Ticket | None:
        """The first ticket of the highest level, late ones last."""
        homes, late = self._homes, self._late
        while self._queued:
            level = self._queued[0]
            fresh, delayed = level.fresh, level.delayed
            while fresh:
                ticket = fresh.popleft()
                if ticket.id in homes and ticket.id not in late:
                    self._reach = (level.number, False)
                    return ticket
            while delayed:
                ticket = delayed.popleft()
                if ticket.id in homes:
                    self._reach = (level.number, True)
                    return ticket
            level.queued = False
            del self._queued[0]
        return None

    def put_back(self, tickets: Sequence[Ticket]) -> None:
        """Each goes back to the front of where it came from."""
        for ticket in reversed(tickets):
            level = self._homes[ticket.id]
            (level.delayed if ticket.id in self._late else level.fresh).appendleft(ticket)
            if not level.queued:
                self._enqueue(level)

    def remove(self, tickets: Sequence[int]) -> None:
        """Forget those of these tickets that wait."""
        for ticket in tickets:
            if ticket in self._homes:
                self.leave((ticket,))

    def leave(self, tickets: Sequence[int]) -> None:
        """These tickets wait no longer."""
        for ticket in tickets:
            level = self._homes.pop(ticket)
            level.waiting -= 1
            if level.timeouts is not None:
                level.timeouts.discard(ticket)
        if self._late:
            self._late.difference_update(tickets)

    def earliest(self, end_of_delay: float | None) -> float | None:
        """When to look again: at the end of the delay of a batch that waits (None: none does), or at a timeout.

        A timeout that only delays a ticket matters to a batch that waits, for it changes the order.
        """
        earliest = end_of_delay
        for timeouts in self._timeouts.values():
            if timeouts.rejects or end_of_delay is not None:
                deadline = timeouts.next()
                if deadline is not None and (earliest is None or deadline < earliest):
                    earliest = deadline
        return earliest

    def due(self, now: float) -> bool:
        """Whether a timeout of a waiting ticket is over at `now`."""
        for timeouts in self._timeouts.values():
            deadline = timeouts.next()
            if deadline is not None and deadline <= now:
                return True
        return False

    def expire(self, now: float) -> tuple[int, ...]:
        """Apply the timeouts that are over at `now`: the rejected tickets. None may be popped meanwhile."""
        self.reordered, self._reach = False, (0, False)
        rejected: list[int] = []
        for timeouts in self._timeouts.values():
            for ticket in timeouts.take_due(now):
                if timeouts.rejects:
                    rejected.append(ticket.id)
                else:
                    self._delay(ticket)
        self.leave(rejected)
        return tuple(rejected)

    def _delay(self, ticket: Ticket) -> None:
        """Let it stand after those within their timeout; in its old place it is passed over."""
        self._late.add(ticket.id)
        level = self._homes[ticket.id]
        level.delayed.append(ticket)
        if has_too_many_gone(level.delayed, self._homes):
            level.delayed = self._without_gone(level.delayed)
        if not level.queued:
            self._enqueue(level)

    def _without_gone(self, tickets: deque[Ticket]) -> deque[Ticket]:
        return deque(ticket for ticket in tickets if ticket.id in self._homes)

    def _enqueue(self, level: Level) -> None:
        level.queued = True
        insort(self._queued, level, key=lambda other: other.number)

    def _level_of(self, ticket: Ticket) -> Level:
        levels, number = self._settings.priority_levels, ticket.priority
        if not levels:
            number = 0
        elif not 0 < number <= levels:
            number = self._settings.default_priority_level
        return self._levels.get(number) or self._new_level(number)

    def _new_level(self, number: int) -> Level:
        own = self._settings.priority_queue_policy.get(number) if number else None
        policy = own or self._settings.default_queue_policy or ModelQueuePolicy()
        timeouts = None
        if policy.default_timeout_microseconds or policy.allow_timeout_override:
            timeouts = self._timeouts.setdefault(policy, Timeouts(policy, self._homes))
        level = Level(number, policy.max_queue_size, timeouts)
        self._levels[number] = level
        return level

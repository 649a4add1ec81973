"""The queue of a model with priority levels or queue policies: who is served first, refused, or waited too long."""

from bisect import insort
from collections import OrderedDict
from collections.abc import Sequence

from naiad.config import ModelDynamicBatching, ModelQueuePolicy
from naiad.scheduler import Drop, DropReason, Ticket
from naiad_scheduler_dynamic.levels import Level
from naiad_scheduler_dynamic.timeouts import Deadlines


class PolicyQueue:
    """Tickets by level, 1 first; in a level those within their timeout first; each kind in the order of arrival.

    A ticket counts as waiting until `leave` or `remove` names it, also while it is popped. `reordered` says that a
    ticket has come to stand before one that is popped: put the popped ones back, or the order is lost.
    """

    __slots__ = ("_delays", "_homes", "_late", "_levels", "_queued", "_reach", "_rejects", "_settings", "reordered")

    def __init__(self, settings: ModelDynamicBatching) -> None:
        self._settings = settings
        self._levels: dict[int, Level] = {}  # made when first used: a configuration may allow millions
        self._queued: list[Level] = []  # every level that has a ticket in a queue, the highest priority first
        self._homes: dict[int, Level] = {}  # the level of every waiting ticket
        self._late: set[int] = set()  # waiting tickets past their timeout
        self._rejects = Deadlines(self._homes)
        self._delays = Deadlines(self._homes)
        self._reach = (0, False)  # where the last popped ticket stood: its level's number, whether it was late
        self.reordered = False

    def push(self, ticket: Ticket) -> Drop | None:
        """Put a ticket at the end of its level; refuse it when that is full."""
        level = self._level_of(ticket)
        if level.limit and level.waiting >= level.limit:
            return Drop((ticket.id,), DropReason.QUEUE_FULL, level.full())
        self._homes[ticket.id] = level
        level.waiting += 1
        self._lane(level, late=False)[ticket.id] = ticket
        timeout = level.timeout_of(ticket)
        if timeout:
            (self._rejects if level.rejects else self._delays).add(ticket.arrival + timeout, ticket.id)
        if (level.number, False) < self._reach:
            self.reordered = True
        return None

    def pop(self) -> Ticket | None:
        """The first ticket of the highest level, late ones last."""
        while self._queued:
            level = self._queued[0]
            lane = level.fresh or level.delayed
            if lane:
                self._reach = (level.number, lane is level.delayed)
                return lane.popitem(last=False)[1]
            level.queued = False
            del self._queued[0]
        return None

    def put_back(self, tickets: Sequence[Ticket]) -> None:
        """Each goes back to the front of where it came from, or of the late ones if it became late meanwhile."""
        for ticket in reversed(tickets):
            lane = self._lane(self._homes[ticket.id], ticket.id in self._late)
            lane[ticket.id] = ticket
            lane.move_to_end(ticket.id, last=False)

    def remove(self, ticket: int) -> bool:
        """Forget a ticket that is in a queue; False for one that is popped or over."""
        level = self._homes.get(ticket)
        if level is None or not (level.fresh.pop(ticket, None) or level.delayed.pop(ticket, None)):
            return False
        self.leave((ticket,))
        return True

    def leave(self, tickets: Sequence[int]) -> None:
        """These tickets are no longer in any queue and will not come back."""
        for ticket in tickets:
            self._homes.pop(ticket).waiting -= 1
        if self._late:
            self._late.difference_update(tickets)

    def earliest(self, end_of_delay: float | None) -> float | None:
        """When to look again: at the end of the delay of a batch that waits (None: none does), or at a timeout.

        A timeout that only delays a ticket matters to a batch that waits, for it changes the order.
        """
        if end_of_delay is None:
            return self._rejects.next()
        times = (end_of_delay, self._rejects.next(), self._delays.next())
        return min(at for at in times if at is not None)

    def due(self, now: float) -> bool:
        """Whether a timeout of a waiting ticket is over at `now`."""
        return any(at is not None and at <= now for at in (self._rejects.next(), self._delays.next()))

    def expire(self, now: float) -> tuple[int, ...]:
        """Apply the timeouts that are over at `now`: the rejected tickets. None may be popped meanwhile."""
        self.reordered, self._reach = False, (0, False)
        for ticket in self._delays.take_due(now):
            level = self._homes[ticket]
            self._late.add(ticket)
            self._lane(level, late=True)[ticket] = level.fresh.pop(ticket)
        rejected = tuple(self._rejects.take_due(now))
        for ticket in rejected:
            del self._homes[ticket].fresh[ticket]
        self.leave(rejected)
        return rejected

    def _level_of(self, ticket: Ticket) -> Level:
        settings = self._settings
        number = ticket.priority if 0 < ticket.priority <= settings.priority_levels else settings.default_priority_level
        if not settings.priority_levels:
            number = 0
        level = self._levels.get(number)
        if level is None:
            policy = settings.priority_queue_policy.get(number) if number else None
            level = Level(number, policy or settings.default_queue_policy or ModelQueuePolicy())
            self._levels[number] = level
        return level

    def _lane(self, level: Level, late: bool) -> OrderedDict[int, Ticket]:
        """The queue of that level's late or other tickets, about to get a ticket."""
        if not level.queued:
            level.queued = True
            insort(self._queued, level, key=lambda other: other.number)
        return level.delayed if late else level.fresh

"""The rate limiter as a pure object: slots request and release resources, and it answers which may execute.

A slot holds all it needs or nothing, and only while it computes. A slot that waits, be it for its turn, for the answer
of a model that it calls, or to go on after it, holds nothing. So a slot that waits for resources waits for slots that
compute, each of which ends without needing more: no circle of waits can come about.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from naiad_rate_limiter.resources import Needs, Pool, ResourceLimit, capacities
from naiad_rate_limiter.wait_queue import Candidate, WaitingSlot, WaitQueue


class _Slot:
    """A slot: idle, waiting (`since` is the number of its want, 0 while it does not wait), or executing.

    `weighted` is its executions times its priority.
    """

    __slots__ = ("holds", "member", "queue", "since", "weighted")

    def __init__(self, member: int, queue: WaitQueue, weighted: int) -> None:
        self.member = member
        self.queue = queue
        self.weighted = weighted
        self.holds = False
        self.since = 0


class RateLimiter:
    """Divides resources among the slots of all models. No clock, no thread, no loop.

    Among the slots that wait, first come those that resume an execution; then those that were passed over for too
    long; then the smallest `executions x priority`, and of equals the one that waits longest. What the first slot that
    lacks something needs is reserved for it: only what remains beside it goes to those behind.
    """

    def __init__(self, limits: Sequence[ResourceLimit] = ()) -> None:
        self._limits = tuple(limits)
        self._members: dict[int, tuple[Needs, ...]] = {}
        self._slots: dict[int, _Slot] = {}
        self._queues: dict[tuple[frozenset[tuple[Pool, int]], int], WaitQueue] = {}
        self._capacity: dict[Pool, int] = {}
        self._in_use: dict[Pool, int] = {}
        self._begun: Counter[Pool] = Counter()
        self._users: Counter[Pool] = Counter()
        self._last_id = self._last_want = 0
        self._stale = False

    # Members: model versions and their slots

    def admit(self, needs: Iterable[Needs]) -> int:
        """Take in a model version whose instances need that; returns its number.

        Raises InvalidArgumentError when it could never run, or clashes with what is there.
        """
        joining = tuple(needs)
        self._resize([each for member in self._members.values() for each in member] + list(joining))
        self._last_id += 1
        self._members[self._last_id] = joining
        return self._last_id

    def enter(self, member: int, needs: Needs) -> int:
        """A new slot of that version, level with the slot that had least of what it needs; returns its number."""
        self._last_id += 1
        others = [slot.weighted for slot in self._slots.values() if _overlap(slot.queue.needs, needs)]
        queue = self._queues.setdefault((frozenset(needs.units.items()), needs.priority), WaitQueue(needs))
        self._slots[self._last_id] = _Slot(member, queue, min(others, default=0))
        self._users.update(needs.units.keys())
        return self._last_id

    def dismiss(self, member: int) -> None:
        """The version and its slots are gone; without explicit limits there is less then, if it needed most.

        What computes elsewhere goes on, even if it holds more than there is then.
        """
        if self._members.pop(member, None) is None:
            return
        for number in [number for number, slot in self._slots.items() if slot.member == member]:
            self.forget(number)
            self._users.subtract(self._slots.pop(number).queue.needs.units.keys())
        used = {slot.queue for slot in self._slots.values()}
        self._queues = {key: queue for key, queue in self._queues.items() if queue in used}
        self._resize([each for others in self._members.values() for each in others])

    # What slots do

    def want(self, number: int, resumes: bool = False) -> None:
        """The slot has work and waits for its turn; `resumes`: to go on with an execution that has begun."""
        slot = self._slots[number]
        if slot.since or slot.holds:
            return
        self._last_want += 1
        slot.since = self._last_want
        queue = slot.queue
        queue.join(WaitingSlot(number, slot.since, slot.weighted, self._begun_for(queue.needs), resumes))
        self._stale = True

    def grants(self) -> list[int]:
        """The slots that may start or resume now, in the order of their turns; each holds what it needs from now on."""
        if not self._stale:
            return []
        self._stale = False
        granted = []
        free = {pool: self._capacity.get(pool, 0) - used for pool, used in self._in_use.items()}
        heads = [(head, queue) for queue in self._queues.values() if (head := self._head(queue)) is not None]
        heapq.heapify(heads)
        while heads:
            head, queue = heads[0]
            needs = queue.needs.units
            fits = all(free[pool] >= count for pool, count in needs.items())
            for pool, count in needs.items():  # taken, or reserved
                free[pool] -= count
            if fits:
                granted.append(head[-1])
                self._take(head[-1])
            following = self._head(queue) if fits else None
            if following is None:
                heapq.heappop(heads)
            else:
                heapq.heapreplace(heads, (following, queue))
        return granted

    def started(self, number: int) -> None:
        """The slot uses its grant for a new execution; a grant that is released without this does not count."""
        slot = self._slots[number]
        slot.weighted += slot.queue.needs.priority
        self._begun.update(slot.queue.needs.units.keys())

    def release(self, number: int) -> None:
        """The slot holds nothing any more: its execution is over, waits for another model, or never began."""
        slot = self._slots.get(number)
        if slot is None or not slot.holds:
            return
        slot.holds = False
        for pool, count in slot.queue.needs.units.items():
            self._in_use[pool] -= count
        self._stale = True

    def forget(self, number: int) -> None:
        """Release what the slot holds and end its wait. It may wait again later."""
        self.release(number)
        slot = self._slots.get(number)
        if slot is not None and slot.since:
            slot.since = 0
            slot.queue.leave(number)
            self._stale = True  # nothing is reserved for it any more

    # Figures

    def capacity(self) -> Mapping[Pool, int]:
        """The units there are."""
        return self._capacity

    def in_use(self, pool: Pool) -> int:
        """The units that are held."""
        return self._in_use.get(pool, 0)

    def waiting_for(self, pool: Pool) -> int:
        """How many slots wait that need units of the pool."""
        return sum(len(queue) for queue in self._queues.values() if pool in queue.needs.units)

    # How

    def _resize(self, needs: Sequence[Needs]) -> None:
        self._capacity = capacities(needs, self._limits)
        kept = {pool: used for pool, used in self._in_use.items() if used}
        self._in_use = dict.fromkeys(self._capacity, 0) | kept
        self._stale = True

    def _take(self, number: int) -> None:
        slot = self._slots[number]
        slot.holds, slot.since = True, 0
        slot.queue.leave(number)
        for pool, count in slot.queue.needs.units.items():
            self._in_use[pool] += count

    def _head(self, queue: WaitQueue) -> Candidate | None:
        return queue.head(self._begun_for(queue.needs), self._patience(queue.needs))

    def _begun_for(self, needs: Needs) -> int:
        """How many executions have begun so far in these pools."""
        return sum(self._begun[pool] for pool in needs.units)

    def _patience(self, needs: Needs) -> int:
        """After how many executions of others a slot goes before them.

        Twice the executions that go before it while all slots have work, so it has no effect then; it ends the wait
        behind a slot that was idle for long and catches up.
        """
        return 2 * needs.priority * sum(self._users[pool] for pool in needs.units)


def _overlap(one: Needs, other: Needs) -> bool:
    return not one.units.keys().isdisjoint(other.units)

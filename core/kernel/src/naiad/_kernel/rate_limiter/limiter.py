"""The rate limiter: a pure object that is told of wants and releases, and answers which places may start.

A place holds all it needs or nothing, and only while it computes. One that waits, be it for its turn, for the answer of
a model that it calls, or to go on after it, holds nothing. So whoever waits for resources waits for places that
compute, each of which ends without needing more: nothing can wait in a circle.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from naiad._kernel.rate_limiter.lines import Line, Turn, Waiting
from naiad._kernel.rate_limiter.resources import Needs, Pool, ResourceLimit, capacities


class _Place:
    """One place: idle, waiting in its line since its want of number `since` (0: it does not), or holding what it needs.

    `standing` is its executions times its priority.
    """

    __slots__ = ("holds", "line", "member", "since", "standing")

    def __init__(self, member: int, line: Line, standing: int) -> None:
        self.member = member
        self.line = line
        self.standing = standing
        self.holds = False
        self.since = 0


class RateLimiter:
    """Shares resources out among the places of all models. No clock, no thread, no loop.

    Among the places that wait, first come those that go on with an execution; then those that were passed over for too
    long; then the smallest `executions x priority`, and of equals the one that waits longest. What the first that lacks
    something needs is kept for it: only what is left beside it goes to those behind.
    """

    def __init__(self, limits: Sequence[ResourceLimit] = ()) -> None:
        self._limits = tuple(limits)
        self._members: dict[int, tuple[Needs, ...]] = {}
        self._places: dict[int, _Place] = {}
        self._lines: dict[tuple[frozenset[tuple[Pool, int]], int], Line] = {}
        self._capacity: dict[Pool, int] = {}
        self._in_use: dict[Pool, int] = {}
        self._begun: Counter[Pool] = Counter()
        self._crowd: Counter[Pool] = Counter()
        self._last_id = self._last_want = 0
        self._stale = False

    # Who is there

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
        """A new place of that version, level with the one that has had least of what it needs; returns its number."""
        self._last_id += 1
        others = [place.standing for place in self._places.values() if _share(place.line.needs, needs)]
        line = self._lines.setdefault((frozenset(needs.units.items()), needs.priority), Line(needs))
        self._places[self._last_id] = _Place(member, line, min(others, default=0))
        self._crowd.update(needs.units.keys())
        return self._last_id

    def dismiss(self, member: int) -> None:
        """The version and its places are gone; without explicit limits there is less then, if it needed most.

        What computes elsewhere goes on, even if it holds more than there is then.
        """
        if self._members.pop(member, None) is None:
            return
        for number in [number for number, place in self._places.items() if place.member == member]:
            self.forget(number)
            self._crowd.subtract(self._places.pop(number).line.needs.units.keys())
        used = {place.line for place in self._places.values()}
        self._lines = {key: line for key, line in self._lines.items() if line in used}
        self._resize([each for others in self._members.values() for each in others])

    # What they do

    def want(self, number: int, resumes: bool = False) -> None:
        """The place has work and waits for its turn; `resumes`: to go on with an execution that has begun."""
        place = self._places[number]
        if place.since or place.holds:
            return
        self._last_want += 1
        place.since = self._last_want
        line = place.line
        line.join(Waiting(number, place.since, place.standing, self._begun_for(line.needs), resumes))
        self._stale = True

    def grants(self) -> list[int]:
        """The places that may start or go on now, in the order of their turns; each holds what it needs from now on."""
        if not self._stale:
            return []
        self._stale = False
        granted = []
        free = {pool: self._capacity.get(pool, 0) - used for pool, used in self._in_use.items()}
        firsts = [(first, line) for line in self._lines.values() if (first := self._first(line)) is not None]
        heapq.heapify(firsts)
        while firsts:
            first, line = firsts[0]
            needs = line.needs.units
            fits = all(free[pool] >= count for pool, count in needs.items())
            for pool, count in needs.items():  # taken, or kept for it
                free[pool] -= count
            if fits:
                granted.append(first[-1])
                self._take(first[-1])
            next_ = self._first(line) if fits else None
            if next_ is None:
                heapq.heappop(firsts)
            else:
                heapq.heapreplace(firsts, (next_, line))
        return granted

    def started(self, number: int) -> None:
        """The place uses what it was granted for a new execution; a grant that is released without this counts not."""
        begun = self._places[number]
        begun.standing += begun.line.needs.priority
        self._begun.update(begun.line.needs.units.keys())

    def release(self, number: int) -> None:
        """The place holds nothing any more: its execution is over, waits for another model, or never began."""
        place = self._places.get(number)
        if place is None or not place.holds:
            return
        place.holds = False
        for pool, count in place.line.needs.units.items():
            self._in_use[pool] -= count
        self._stale = True

    def forget(self, number: int) -> None:
        """The place neither holds nor wants anything any more; it may come back."""
        self.release(number)
        place = self._places.get(number)
        if place is not None and place.since:
            place.since = 0
            place.line.leave(number)
            self._stale = True  # nothing is kept for it any more

    # What is told

    def capacity(self) -> Mapping[Pool, int]:
        """The units there are."""
        return self._capacity

    def in_use(self, pool: Pool) -> int:
        """The units that are held."""
        return self._in_use.get(pool, 0)

    def waiting_for(self, pool: Pool) -> int:
        """How many places wait that need units of the pool."""
        return sum(len(line) for line in self._lines.values() if pool in line.needs.units)

    # How

    def _resize(self, needs: Sequence[Needs]) -> None:
        self._capacity = capacities(needs, self._limits)
        kept = {pool: used for pool, used in self._in_use.items() if used}
        self._in_use = dict.fromkeys(self._capacity, 0) | kept
        self._stale = True

    def _take(self, number: int) -> None:
        place = self._places[number]
        place.holds, place.since = True, 0
        place.line.leave(number)
        for pool, count in place.line.needs.units.items():
            self._in_use[pool] += count

    def _first(self, line: Line) -> Turn | None:
        return line.first(self._begun_for(line.needs), self._patience(line.needs))

    def _begun_for(self, needs: Needs) -> int:
        """How many executions have begun so far in these pools."""
        return sum(self._begun[pool] for pool in needs.units)

    def _patience(self, needs: Needs) -> int:
        """After how many executions of others a place goes before them.

        It is twice what its priority lets go before it when everybody always has work, so that it changes nothing then;
        it ends the wait behind a place that has many executions to make up for.
        """
        return 2 * needs.priority * sum(self._crowd[pool] for pool in needs.units)


def _share(one: Needs, other: Needs) -> bool:
    return not one.units.keys().isdisjoint(other.units)

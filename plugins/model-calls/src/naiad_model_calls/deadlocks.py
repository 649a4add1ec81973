"""Deadlock detection: refuses a call of each cycle of waiting calls, and resumes paused streams in such a cycle."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from naiad.errors import CallRingError
from naiad.in_flight import Occupancy, Occupant
from naiad_model_calls.model_call import ModelCall
from naiad_model_calls.wait_graph import WaitGraph

CHECK_SECONDS = 0.05
"""A call that waits longer than this is checked, and again every so often.

Most calls are answered sooner and cost nothing here. An execution that has just returned is not mistaken for one that
waits. PostgreSQL finds deadlocks in the same way, after `deadlock_timeout`.
"""

MOST_TIMES = 20
"""The next check is at least so many times later as the last one took: checks take 5 % of the event loop at most."""


class DeadlockDetector:
    """Checks the open calls of a server while any of them waits long. For the event loop's thread."""

    def __init__(self, occupancy: Callable[[], Iterable[Occupancy]]) -> None:
        self._occupancy = occupancy
        self._loop = asyncio.get_running_loop()
        self._open: dict[ModelCall, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def began(self, call: ModelCall) -> None:
        """A call has begun that a scope waits for."""
        self._open[call] = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(CHECK_SECONDS, self._check)

    def ended(self, call: ModelCall) -> None:
        """A call is over; harmless for one that has not begun."""
        self._open.pop(call, None)

    def close(self) -> None:
        """Check no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self._timer = None
        started = self._loop.time()
        try:
            self._resolve(started - CHECK_SECONDS)
        finally:
            if self._open:
                took = self._loop.time() - started
                self._timer = self._loop.call_later(max(CHECK_SECONDS, MOST_TIMES * took), self._check)

    def _resolve(self, before: float) -> None:
        """End the rings of the calls that have begun before that time."""
        while calls := [call for call, began in self._open.items() if began <= before and not call.is_paused]:
            snapshot = Snapshot(list(self._occupancy()), calls)
            if not snapshot.lift() and not snapshot.refuse():
                return


class Snapshot:
    """Who waits for whom at one moment, as far as these calls are concerned.

    Nodes of its wait-for graph are the calls, and the users of resources: pairs of the resource's index and the user's.
    """

    def __init__(self, resources: Sequence[Occupancy], calls: Sequence[ModelCall]) -> None:
        self._calls = calls
        self._made_for: dict[Occupant, list[ModelCall]] = defaultdict(list)
        for call in calls:
            for request in call.callers:
                self._made_for[request].append(call)
        self._location: dict[Occupant, Sequence[tuple[int, int]]] = {}
        self._queued: dict[ModelCall, Occupancy] = {}
        self._paused: dict[Hashable, list[Occupant]] = defaultdict(list)
        waits: dict[Hashable, list[Sequence[Hashable]]] = {call: [] for call in calls}
        for index, resource in enumerate(resources):
            self._locate(index, resource)
        for occupant, users in self._location.items():
            if occupant.request.caller in waits:
                waits[occupant.request.caller].append(users)
        for user in {user for users in self._location.values() for user in users}:
            group = resources[user[0]].users[user[1]]
            waits[user] = [wait for occupant in group for wait in self._waits_of(occupant, user)]
        self._graph = WaitGraph(waits)

    def lift(self) -> bool:
        """Let the streams flow that users which are stuck hold back for each other; returns whether there were any."""
        paused = [occupant for node in self._graph.stuck for occupant in self._paused[node]]
        for occupant in paused:
            occupant.unblock()
            if isinstance(occupant.request.caller, ModelCall):
                occupant.request.caller.lift()
        return any(not occupant.is_paused for occupant in paused)

    def refuse(self) -> bool:
        """Refuse the newest call of one ring; returns whether there was one."""
        ring = [node for node in self._graph.ring() if isinstance(node, ModelCall)]
        age = {call: number for number, call in enumerate(self._calls)}
        newest = max((call for call in ring if call in self._queued), key=age.__getitem__, default=None)
        if newest is None:
            return False
        start = ring.index(newest)
        models = [call.caller_model for call in (*ring[start:], *ring[: start + 1])]
        resource = self._queued[newest]
        newest.abort(
            CallRingError(
                f"the call from model '{newest.caller_model}' to model '{newest.model}' would wait for ever for "
                f"{resource.name}: every request that has one waits itself, in the ring "
                f"{' -> '.join(map(repr, models))}; {resource.advice}, or let the models call in one direction only",
                retry_after=1.0,
            )
        )
        return True

    def _locate(self, index: int, resource: Occupancy) -> None:
        """Note which user has each occupant; one that waits until any user goes on is noted for all of them."""
        held = []
        for number, group in enumerate(resource.users):
            if any(map(self._may_wait, group)):
                held.append((index, number))
                self._location.update((occupant, held[-1:]) for occupant in group)
        if resource.slots <= len(resource.users) == len(held):
            for occupant in resource.waiting():
                self._location[occupant] = held
                if isinstance(occupant.request.caller, ModelCall):
                    self._queued[occupant.request.caller] = resource

    def _may_wait(self, occupant: Occupant) -> bool:
        return occupant in self._made_for or occupant.is_paused or bool(occupant.waits_for)

    def _waits_of(self, occupant: Occupant, user: Hashable) -> Iterator[Sequence[Hashable]]:
        """What has to go on before the occupant is over."""
        yield from ((call,) for call in self._made_for.get(occupant, ()))
        caller = occupant.request.caller
        is_unread = isinstance(caller, ModelCall) and caller.is_paused
        if occupant.is_paused and (is_unread or occupant.waits_for):
            self._paused[user].append(occupant)
        if occupant.is_paused and isinstance(caller, ModelCall) and is_unread:
            yield from ((call,) for call in self._calls if call.is_beside(caller))
        for other in occupant.waits_for:
            users = self._location.get(other)
            yield from self._waits_of(other, user) if users is None else (users,)

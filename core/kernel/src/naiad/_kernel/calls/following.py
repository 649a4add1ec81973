"""Following calls through the models of a running server: who waits for whom at this moment, and refusing rings."""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence, Set

from naiad._kernel.call import Call, Deliver
from naiad._kernel.calls.callers import Caller, ExecutingVersion
from naiad._kernel.calls.waits import Queued, Served, Wait, WaitGraph
from naiad._kernel.worker import Work
from naiad.errors import CallRingError, NaiadError
from naiad.servables import Capacity, CapacityWait, WaitTarget
from naiad.types import Request

SECOND_LOOK = 0.05
"""Seconds after which a call that seems to close a ring is looked at again, where the first look may have erred."""


def follow(version: ExecutingVersion, caller: object, send: Callable[[Deliver], Call], deliver: Deliver) -> Call:
    """Give a version a request that a caller waits for, and remember that it does.

    Raises CallRingError when every instance of the version waits for that caller, and whatever `send` raises. A
    caller on another thread than its execution may not hold its place: such an execution may be about to return and go
    on in the background. Its call gets that error a little later, if it is still so then.
    """
    if not isinstance(caller, Caller):
        return send(deliver)
    refused = _refusal(version, caller)
    if refused is not None and not caller.is_elsewhere:
        raise refused
    call = send(deliver)
    caller.wait_for(version, call)
    if refused is not None:
        asyncio.get_running_loop().call_later(SECOND_LOOK, _look_again, version, caller, call)
    return call


def _look_again(version: ExecutingVersion, caller: Caller, call: Call) -> None:
    if call.over or any(call in work.calls for work in version.executing()):
        return
    refused = _refusal(version, caller)
    if refused is not None:
        call.cancel()
        call.deliver(refused)


class FollowedWaits:
    """Waits for a capacity, among them those of requests that callers wait for, which may close rings."""

    def waiting(self, wait: CapacityWait, request: Request, refuse: Callable[[NaiadError], None]) -> None:
        """Remember that a request waits, where a caller waits for it, and `refuse` it in a ring.

        A caller on another thread than its execution is looked at once more before, as `follow` does.
        """
        caller = request.caller
        if not isinstance(caller, Caller):
            return
        refused = _ring_refusal(wait.capacity, caller)
        caller.capacity_waits.append(wait)
        if refused is None:
            return
        if not caller.is_elsewhere:
            refuse(refused)
            return

        def look_again() -> None:
            still = None if wait.over else _ring_refusal(wait.capacity, caller)
            if still is not None:
                refuse(still)

        asyncio.get_running_loop().call_later(SECOND_LOOK, look_again)

    def paused_for(self, capacity: Capacity) -> None:
        """Let what was paused until there is capacity go on, if that is taken by a caller who waits for it."""
        for targets in capacity.under_way().values():
            for target in targets:
                for caller in () if isinstance(target, CapacityWait) else target[1].callers:
                    if caller.open_waits():
                        picture = Picture(caller)
                        if caller in picture.graph.stuck() and picture.lift_pauses():
                            return


def lift_pauses(caller: Caller) -> None:
    """Let the streams go on that this caller has not read, if what else it waits for may need what they occupy.

    That is an instance, as can be seen, or resources that are limited, which others may wait for out of sight.
    """
    if caller.has_left or len(caller.begun) < 2:
        return
    if caller.shares_resources:
        for begun in list(caller.begun):
            begun.lift()
        return
    picture = Picture(caller)
    if caller in picture.graph.stuck():
        picture.lift_pauses()


def _refusal(version: ExecutingVersion, caller: Caller) -> CallRingError | None:
    executing = version.executing()
    if len(executing) < version.place_count or not all(_holders(work, caller) for work in executing):
        return None  # some place is free, or will be without anybody's answer: most calls end here
    return _ring_refusal(version, caller)


def _ring_refusal(where: ExecutingVersion | Capacity, caller: Caller) -> CallRingError | None:
    picture = Picture(caller, where)
    ring = picture.graph.ring(caller)
    if ring and picture.lift_pauses():
        ring = Picture(caller, where).graph.ring(caller)
    if not ring:
        return None
    names = [each.model for each in ring if isinstance(each, Caller)]
    told = " -> ".join(f"'{name}'" for name in (*names, names[0]))
    if isinstance(where, Capacity):
        return CallRingError(
            f"the call from model '{caller.model}' would wait for ever for room at {where}: every request that it has "
            f"room for waits itself, in the ring {told}; {where.advice}, or let the models call in one direction only",
            retry_after=1.0,
        )
    return CallRingError(
        f"the call from model '{caller.model}' to model '{where.name}' would wait for ever: every instance that "
        f"could answer it waits itself, in the ring {told}; let '{where.name}' have more instances (instance_group "
        "count) than calls wait inside it at once, or let the models call in one direction only",
        retry_after=1.0,
    )


class Picture:
    """The part of all waits that this caller depends on, with one more for that version or capacity, if any.

    An execution that is paused, because a caller has not read what it streams, waits for that caller.
    """

    def __init__(self, caller: Caller, where: ExecutingVersion | Capacity | None = None) -> None:
        self._caller = caller
        self._waits: dict[Hashable, set[Wait]] = {}
        self._places: dict[Hashable, Sequence[Set[Hashable]]] = {}
        self._open: list[Caller | Call] = [caller]
        if where is not None:
            self._look_at(where)
        while self._open:
            self._follow(self._open.pop())
        if where is not None:
            self._waits[caller].add(Queued(where))
        self.graph = WaitGraph(self._waits, self._places)

    def lift_pauses(self) -> bool:
        """Let the streams go on that those who are stuck have not read, or have no room for; whether there were any."""
        stuck = self.graph.stuck()
        unread = [begun for each in stuck if isinstance(each, Caller) for begun in list(each.begun) if begun.lift()]
        held = [hold for each in stuck if isinstance(each, Call) for hold in each.behind]
        for hold in held:
            hold.lift()
        return bool(unread or held)

    def _follow(self, caller: Caller | Call) -> None:
        if caller in self._waits:
            return
        waits = self._waits[caller] = set()
        if isinstance(caller, Call):
            waits.update(self._waits_of(caller.behind))
            return
        waits.update(self._waits_of(caller.open_waits()))

    def _waits_of(self, targets: Sequence[WaitTarget]) -> Iterator[Wait]:
        for target in targets:
            if isinstance(target, CapacityWait):
                self._look_at(target.capacity)
                yield Queued(target.capacity)
            elif not target[1].is_paused:  # else there is something to read
                yield self._wait(*target)

    def _wait(self, version: ExecutingVersion, call: Call) -> Wait:
        for work in version.executing():
            if any(call is each for each in work.calls):
                return self._served(_holders(work, self._caller) if call.stream is None else set(call.callers))
        if call.stream is not None:  # its execution has returned and goes on with it in the background
            return self._served(set(call.callers))
        self._look_at(version)
        return Queued(version)

    def _served(self, by: set[Caller | Call]) -> Wait:
        self._open.extend(by)
        return Served(frozenset(by))

    def _look_at(self, where: ExecutingVersion | Capacity) -> None:
        if where in self._places:
            return
        if isinstance(where, Capacity):
            self._look_into(where)
        else:
            self._look_at_instances(where)

    def _look_into(self, capacity: Capacity) -> None:
        under_way = capacity.under_way()
        self._places[capacity] = [{each} for each in under_way]
        for each, targets in under_way.items():
            waits = self._waits[each] = set()  # known before it is followed: that may lead back here
            waits.update(self._waits_of(targets))

    def _look_at_instances(self, version: ExecutingVersion) -> None:
        executing = version.executing()
        held = [_holders(work, self._caller) for work in executing]
        free = max(0, version.place_count - len(executing))
        self._places[version] = [*held, *(set() for _ in range(free))]
        for callers in held:
            self._open.extend(callers)


def _holders(work: Work, caller: Caller) -> set[Caller | Call]:
    """Who keeps an execution from its end: callers in it that wait, as this one is about to, and those it waits for.

    A call of it that is paused until there is room at other steps of its ensemble stands for itself.
    """
    found: set[Caller | Call] = set()
    for call in work.calls:
        found.update(each for each in call.callers if each is caller or each.open_waits())
        if call.is_paused:
            if call.behind:
                found.add(call)
            if isinstance(call.request.caller, Caller):
                found.add(call.request.caller)
    return found

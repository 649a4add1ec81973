"""The queue of a version whose places start only when the rate limiter lets them."""

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from naiad._kernel.answers import AnswerReader
from naiad._kernel.queue import ModelQueue
from naiad._kernel.rate_limiter.resources import Needs, needs_of
from naiad._kernel.rate_limiter.rests import Rest, Visit
from naiad._kernel.rate_limiter.sharing import Share
from naiad._kernel.sequences.queue import SequenceQueue
from naiad._kernel.sequences.reading import SequenceReader
from naiad._kernel.statistics import VersionCounters
from naiad._kernel.streams import ResponseStream
from naiad._kernel.worker import Work
from naiad.backend import Placement
from naiad.scheduler import Scheduler


class LimitedQueue(ModelQueue):
    """A queue that shows its scheduler only those free places as idle that were granted what they need.

    Whenever a decision is due, every free place asks; what the scheduler then does not use goes back at once. Those
    that were not granted stay in line, and the decision is made anew when it is their turn.
    """

    def __init__(
        self,
        share: Share,
        needs: Sequence[Needs],
        reader: AnswerReader,
        make_scheduler: Callable[[], Scheduler],
        counters: VersionCounters,
        send: Callable[[Work], None],
    ) -> None:
        super().__init__(reader, make_scheduler, counters, send)
        self._share = share
        for place, each in enumerate(needs):
            share.enter(each, functools.partial(self._granted, place))
        self._free: dict[int, None] = {}
        self._granted_places: set[int] = set()
        self._visits: dict[int, Visit] = {}
        self._deciding = False
        self._turn_is_due = False
        share.on_leave = self._end_all_visits
        self._assembler.streams.lend = self._lend_until_there_is_room

    def free(self, place: int) -> None:
        """A place of an instance is free, and what it held with it; it asks for its next turn when there is work."""
        self._share.release(place)
        self._end_visit(place)
        self._free[place] = None
        if self.waiting:
            self._decide()
        else:
            self._share.hand_out()

    def lose(self, place: int) -> None:
        """A place is gone until it is free again."""
        super().lose(place)
        self._free.pop(place, None)
        self._granted_places.discard(place)
        self._share.forget(place)
        self._end_visit(place)
        self._share.hand_out()

    def rest(self, place: int) -> Rest:
        """The execution at the place waits for the answer of another model, and lends what it holds meanwhile."""
        if place in self._free or place in self._granted_places:  # it has returned, and has left a thread behind
            return Rest(Visit(over=True), lambda: None)
        visit = self._visits.setdefault(place, Visit())
        if not visit.calls_out:
            self._share.forget(place)
            self._share.hand_out()
        return Rest(visit, functools.partial(self._go_on, place))

    # Responses that wait until their caller has taken others

    def _lend_until_there_is_room(self, stream: ResponseStream, room: "Future[None]") -> "Future[None]":
        go: Future[None] = Future()
        go.set_running_or_notify_cancel()  # who stops waiting must not cancel what is set here
        self._on_the_loop(go, lambda: self._rest_until(stream, room, go))
        return go

    def _rest_until(self, stream: ResponseStream, room: "Future[None]", go: "Future[None]") -> None:
        if stream.call.ticket.id not in self._running:  # its execution has returned, and holds nothing
            room.add_done_callback(lambda _: go.set_result(None))
            return
        rest = self.rest(stream.place)
        room.add_done_callback(lambda _: self._on_the_loop(go, lambda: self._has_room(rest, go)))

    def _has_room(self, rest: Rest, go: "Future[None]") -> None:
        """Let a sender go on; one whose execution also waits for a model goes on at once, without what it lends."""
        if rest.is_the_last:
            rest.over(lambda: go.set_result(None))
        else:
            rest.over(lambda: None)
            go.set_result(None)

    def _on_the_loop(self, go: "Future[None]", act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop is closed, and nobody waits for responses any more
            go.set_result(None)

    # Turns

    def _decide(self) -> None:
        if self.waiting:
            for place in self._free:
                self._share.want(place)
        self._deciding = True
        try:
            self._share.hand_out()
        finally:
            self._deciding = False
        self._take_turns()

    def _take_turns(self) -> None:
        """Decide with the places that were granted; those that are still idle afterwards give it back."""
        self._turn_is_due = False
        granted, self._granted_places = self._granted_places, set()
        super()._decide()
        for place in granted:
            if place in self._idle:
                self._idle.remove(place)
                self._free[place] = None
                self._share.release(place)
            else:
                self._share.started(place)
        self._share.hand_out()

    def _leave(self, tickets: Sequence[int], settled: bool = False) -> None:
        super()._leave(tickets, settled)
        if not self.waiting:  # nothing needs to be kept for its places
            for place in self._free:
                self._share.forget(place)
            self._share.hand_out()

    def _granted(self, place: int) -> None:
        visit = self._visits.pop(place, None)
        if visit is not None:
            visit.end()
            return
        del self._free[place]
        self._idle.append(place)
        self._granted_places.add(place)
        if not self._deciding and not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._take_turns)

    # Calls of other models

    def _go_on(self, place: int) -> None:
        if self._share.has_left:
            self._end_visit(place)
        self._share.want(place, resumes=True)
        self._share.hand_out()

    def _end_visit(self, place: int) -> None:
        visit = self._visits.pop(place, None)
        if visit is not None:
            visit.end()

    def _end_all_visits(self) -> None:
        for place in list(self._visits):
            self._end_visit(place)


class LimitedSequenceQueue(LimitedQueue, SequenceQueue):
    """The same for a model of sequences."""


def queue_for(
    share: Share | None,
    placements: Sequence[Placement],
    reader: AnswerReader,
    make_scheduler: Callable[[], Scheduler],
    counters: VersionCounters,
    send: Callable[[Work], None],
) -> ModelQueue:
    """The queue of a version with one place for each of these: a plain one where nothing is limited."""
    has_sequences = isinstance(reader, SequenceReader)
    needs = [needs_of(each) for each in placements]
    if share is None or not any(each.units for each in needs):
        return (SequenceQueue if has_sequences else ModelQueue)(reader, make_scheduler, counters, send)
    limited = LimitedSequenceQueue if has_sequences else LimitedQueue
    return limited(share, needs, reader, make_scheduler, counters, send)

"""Who waits for whom among models that call one another: a pure picture of a moment, which finds who waits for ever."""

from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Queued:
    """A call that waits for whichever place of a model is free first."""

    model: Hashable


@dataclass(frozen=True, slots=True)
class Served:
    """A call that is executed: it is answered when these callers have got all that they wait for."""

    by: frozenset[Hashable]


Wait = Queued | Served


class WaitGraph:
    """Callers, what each waits for, and who holds the places of the models.

    A caller goes on when all that it waits for is answered. `places` has, for each place of a model, the callers whose
    execution holds it; a place that nobody holds, or that executes without waiting for a model, has none. A model that
    is not in it has a place like that.
    """

    def __init__(
        self,
        waits: Mapping[Hashable, Collection[Wait]],
        places: Mapping[Hashable, Sequence[Set[Hashable]]],
    ) -> None:
        self._waits = waits
        self._places = places

    def stuck(self) -> frozenset[Hashable]:
        """The callers that can never go on, whatever else happens: the largest set that waits for itself alone."""
        stuck = {caller for caller, waits in self._waits.items() if waits}
        while True:
            live = {caller for caller in stuck if all(self._answered(wait, stuck) for wait in self._waits[caller])}
            if not live:
                return frozenset(stuck)
            stuck -= live

    def ring(self, start: Hashable) -> tuple[Hashable, ...]:
        """From a caller to one that it waits for, and so on, until it would come to one again; () if it can go on."""
        stuck = self.stuck()
        found: list[Hashable] = []
        caller: Hashable | None = start if start in stuck else None
        while caller is not None and caller not in found:
            found.append(caller)
            caller = self._hindrance(caller, stuck, found[0])
        return tuple(found)

    def _answered(self, wait: Wait, stuck: Set[Hashable]) -> bool:
        """Whether a call can be answered while these callers do not move."""
        if isinstance(wait, Served):
            return wait.by.isdisjoint(stuck)
        places = self._places.get(wait.model)
        return places is None or any(stuck.isdisjoint(place) for place in places)

    def _hindrance(self, caller: Hashable, stuck: Set[Hashable], first: Hashable) -> Hashable:
        """A stuck caller that it waits for, the first of the ring where it can be; None for a model without places."""
        wait = next(wait for wait in self._waits[caller] if not self._answered(wait, stuck))
        holders: Set[Hashable] = wait.by if isinstance(wait, Served) else frozenset().union(*self._places[wait.model])
        return first if first in holders else next((holder for holder in holders if holder in stuck), None)

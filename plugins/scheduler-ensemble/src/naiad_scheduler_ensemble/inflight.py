"""`max_inflight_requests`: limits how many requests of an ensemble wait or run at each step."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


class Inflight:
    """Counts what each step has under way, and keeps the others in the order in which they came."""

    def __init__(self, limit: int, steps: int) -> None:
        self._limit = limit
        self._under_way = [0] * steps
        self._waiting: list[OrderedDict[Hashable, None]] = [OrderedDict() for _ in range(steps)]

    def enter(self, step: int, request: Hashable) -> bool:
        """Whether the request may be submitted now; otherwise it waits for those before it."""
        if self._under_way[step] < self._limit:
            self._under_way[step] += 1
            return True
        self._waiting[step][request] = None
        return False

    def leave(self, step: int) -> Any:
        """A request of the step is over. Returns the waiting request that may be submitted now, None if none waits."""
        if self._waiting[step]:
            return self._waiting[step].popitem(last=False)[0]
        self._under_way[step] -= 1
        return None

    def forget(self, step: int, request: Hashable) -> None:
        """The request waits no more; harmless when it does not wait."""
        self._waiting[step].pop(request, None)

"""Slots of all instances, each for one live sequence, and which of them are free."""

import heapq


class Slots:
    """Slots in the order in which they are given away: the first of every instance, then the second of every one.

    A slot is a number: `instance_of` and `row_of` say where it is. Slots of an instance that is `gone` are not given
    away until it is `back`. Each call is O(log n) in the number of slots that have ever been in use.
    """

    __slots__ = ("_free", "_gone", "_instances", "_total", "_untouched")

    def __init__(self, instances: int, each: int) -> None:
        self._instances = instances
        self._total = instances * each
        self._free: list[int] = []
        self._untouched = 0  # this slot and those after it have never been in use
        self._gone: dict[int, list[int]] = {}  # by instance that is gone, its free slots that `take` has skipped

    @property
    def any_gone(self) -> bool:
        """Whether an instance is gone."""
        return bool(self._gone)

    def instance_of(self, slot: int) -> int:
        """The instance that has this slot."""
        return slot % self._instances

    def row_of(self, slot: int) -> int:
        """The number of the slot within its instance, from 0."""
        return slot // self._instances

    def take(self) -> int:
        """The lowest free slot, -1 when there is none."""
        while True:
            if self._free:
                slot = heapq.heappop(self._free)
            elif self._untouched < self._total:
                slot = self._untouched
                self._untouched += 1
            else:
                return -1
            kept = self._gone.get(slot % self._instances) if self._gone else None
            if kept is None:
                return slot
            kept.append(slot)

    def give_back(self, slot: int) -> None:
        """A slot is free again."""
        heapq.heappush(self._free, slot)

    def gone(self, instance: int) -> None:
        """That instance is not there any more."""
        self._gone.setdefault(instance, [])

    def back(self, instance: int) -> None:
        """That instance is there."""
        for slot in self._gone.pop(instance, ()):
            heapq.heappush(self._free, slot)

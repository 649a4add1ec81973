"""The sequences that have a slot and no request, and for how long."""

import heapq
import math

from naiad_scheduler_sequence.sequences import LiveSequence


class Silence:
    """Sequences that end when they are silent for `limit` seconds.

    A sequence is looked at when its silence might be over, however often it has spoken since: a request costs nothing
    more than a note in its sequence, and `wake_at`, when to look again, may be earlier than anything is to be done.
    """

    __slots__ = ("_end", "_heap", "_limit", "_now", "_watched")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        # the end of a silence that begins at that time: one number for a whole batch, 0.1 µs a request less
        self._now, self._end = -math.inf, 0.0
        self._heap: list[tuple[float, int, LiveSequence]] = []
        self._watched = 0  # those in the heap that are not over

    @property
    def wake_at(self) -> float | None:
        """When to look again, None when there is nothing to look at."""
        return self._heap[0][0] if self._heap else None

    def begin(self, sequence: LiveSequence, now: float) -> bool:
        """A sequence has fallen silent. True says that `wake_at` is earlier than before."""
        if now != self._now:
            self._now, self._end = now, now + self._limit
        sequence.silent_until = end = self._end
        if sequence.watched:
            return False
        heap = self._heap
        sequence.watched = True
        self._watched += 1
        heapq.heappush(heap, (end, sequence.number, sequence))
        return heap[0][2] is sequence

    def over(self, sequence: LiveSequence) -> None:
        """A sequence is over; what is kept of it goes when it comes up, or with others when most are over."""
        if not sequence.watched:
            return
        sequence.watched = False
        self._watched -= 1
        if len(self._heap) > 64 + 2 * self._watched:
            self._heap = [entry for entry in self._heap if entry[2].watched]
            heapq.heapify(self._heap)
        while self._heap and not self._heap[0][2].watched:
            heapq.heappop(self._heap)

    def take_due(self, now: float) -> list[LiveSequence]:
        """The sequences that have been silent for too long at `now`; they are watched no longer."""
        found: list[LiveSequence] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            sequence = heap[0][2]
            if now < sequence.silent_until < math.inf and sequence.watched:
                heapq.heapreplace(heap, (sequence.silent_until, sequence.number, sequence))
                continue
            heapq.heappop(heap)
            if sequence.watched:
                sequence.watched = False
                self._watched -= 1
                if sequence.silent_until <= now:
                    found.append(sequence)
        return found

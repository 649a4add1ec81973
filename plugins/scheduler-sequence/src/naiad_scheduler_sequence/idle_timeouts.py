"""Idle timeouts of sequences: a heap of the sequences that hold a slot and have no request in progress."""

import heapq
import math

from naiad_scheduler_sequence.sequences import LiveSequence


class IdleTimeouts:
    """Ends sequences that are idle for `limit` seconds.

    A request only updates the sequence's own deadline; its entry in the heap is corrected when it comes up. So
    `wake_at` may be earlier than the first real timeout.
    """

    __slots__ = ("_end", "_heap", "_limit", "_now", "_watched")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        # the deadline for idle times that begin at `_now`: computed once for a whole batch, saves 0.1 µs per request
        self._now, self._end = -math.inf, 0.0
        self._heap: list[tuple[float, int, LiveSequence]] = []
        self._watched = 0  # heap entries of sequences that have not ended

    @property
    def wake_at(self) -> float | None:
        """When the first timeout may be due, None when no sequence is idle."""
        return self._heap[0][0] if self._heap else None

    def begin(self, sequence: LiveSequence, now: float) -> bool:
        """The sequence is idle from `now` on. Returns True if `wake_at` is earlier than before."""
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
        """The sequence has ended: its heap entry is removed when it comes up, or when most entries are obsolete."""
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
        """Remove and return the sequences whose idle timeout has passed at `now`."""
        expired: list[LiveSequence] = []
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
                    expired.append(sequence)
        return expired

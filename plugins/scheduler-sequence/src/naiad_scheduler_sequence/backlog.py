"""Backlog: the sequences that wait for a slot, in order of arrival."""

import heapq
import math
from collections import OrderedDict

from naiad.scheduler import Ticket
from naiad_scheduler_sequence.sequences import LiveSequence


class Backlog:
    """First come, first served; a sequence whose callers do not wait for ever has a deadline.

    Each call is O(log n) at most in the number of deadlines. A deadline that holds no more is passed over.
    """

    __slots__ = ("_deadlines", "_sequences")

    def __init__(self) -> None:
        self._sequences: OrderedDict[int, LiveSequence] = OrderedDict()
        self._deadlines: list[tuple[float, int]] = []

    def __len__(self) -> int:
        """How many sequences wait for a slot."""
        return len(self._sequences)

    def add(self, sequence: LiveSequence) -> None:
        """A sequence has to wait, behind all others."""
        self._sequences[sequence.number] = sequence

    def limit(self, sequence: LiveSequence, ticket: Ticket) -> None:
        """A request of a sequence that waits here has a timeout: the nearest deadline of all of them counts."""
        deadline = ticket.arrival + ticket.timeout
        if deadline >= sequence.deadline:
            return
        sequence.deadline = deadline
        heapq.heappush(self._deadlines, (deadline, sequence.number))
        if len(self._deadlines) > 64 + 2 * len(self._sequences):
            self._deadlines = [entry for entry in self._deadlines if self._holds(*entry)]
            heapq.heapify(self._deadlines)

    def remove(self, sequence: LiveSequence) -> None:
        """A sequence waits no longer."""
        del self._sequences[sequence.number]

    def pop(self) -> LiveSequence:
        """The sequence that has waited longest. There must be one."""
        return self._sequences.popitem(last=False)[1]

    def next_deadline(self) -> float | None:
        """When the first sequence will have waited too long, None when none ever will."""
        while self._deadlines:
            deadline, number = self._deadlines[0]
            if self._holds(deadline, number):
                return deadline
            heapq.heappop(self._deadlines)
        return None

    def due(self, now: float) -> list[LiveSequence]:
        """The sequences that have waited too long at `now`; they stay until they are removed, but are named once."""
        starting = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            sequence = self._sequences[heapq.heappop(self._deadlines)[1]]
            sequence.deadline = math.inf
            starting.append(sequence)
        return starting

    def _holds(self, deadline: float, number: int) -> bool:
        sequence = self._sequences.get(number)
        return sequence is not None and sequence.deadline == deadline

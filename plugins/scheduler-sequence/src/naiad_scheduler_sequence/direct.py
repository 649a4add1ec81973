"""The direct strategy: each sequence keeps one row of its instance's batches until it ends."""

import math
from collections.abc import Container, Hashable

from naiad.scheduler import Dispatch
from naiad_kit.sequences import Row
from naiad_scheduler_sequence.batcher import Formed
from naiad_scheduler_sequence.heads import Heads
from naiad_scheduler_sequence.reasons import Reason
from naiad_scheduler_sequence.sequences import LiveSequence

# taken out of the class once: a look into an enum costs 0.1 µs
_FULL, _UTILIZATION, _DELAY, _NO_DELAY = Reason.FULL, Reason.UTILIZATION, Reason.DELAY, Reason.NO_DELAY
_EMPTY = Row(0)


class DirectBatcher:
    """Rows 0 up to the highest slot with a request in the batch; slots below it may have none, and are null rows.

    A batch waits until `enough` slots have a request, at most `delay` seconds. Requests whose shape is not that of the
    oldest one stay for the next batch.
    """

    __slots__ = ("_delay", "_enough", "_heads", "_instance", "_most", "_ready", "_rows", "wake_at")

    def __init__(
        self, instance: int, waiting: Container[int], *, slots: int, delay: float, minimum_utilization: float
    ) -> None:
        self._instance = instance
        self._most = slots
        self._delay = delay if minimum_utilization > 0 else 0.0
        # the configuration has 32-bit floats: 0.6 is a little more than 3 of 5
        self._enough = math.ceil(minimum_utilization * slots - 1e-4)
        self._rows: list[LiveSequence | None] = []
        self._ready = 0  # how many of them have a request that may run
        self._heads = Heads(waiting)
        self.wake_at: float | None = None

    def enter(self, sequence: LiveSequence, row: int) -> None:
        """The row is the sequence's from now on."""
        while len(self._rows) <= row:
            self._rows.append(None)
        self._rows[row] = sequence

    def leave(self, sequence: LiveSequence, row: int) -> None:
        """The row is empty from now on."""
        rows = self._rows
        rows[row] = None
        if sequence.offered:
            sequence.offered = False
            self._ready -= 1
        while rows and rows[-1] is None:
            rows.pop()

    def offer(self, sequence: LiveSequence) -> None:
        """Let it take part in the next batch."""
        sequence.offered = True
        self._ready += 1
        self._heads.push(sequence)
        self._heads.tidy(self._ready)

    def form(self, now: float) -> Formed | None:
        """The waiting requests of one shape, once enough slots have one or the oldest has waited for the delay."""
        self.wake_at = None
        oldest = self._heads.first()
        if oldest is None:
            return None
        if self._delay and self._ready < self._enough:
            end = oldest[1].arrival + self._delay
            if now < end:
                self.wake_at = end
                return None
            return self._send(oldest[1].shape_key, _DELAY)
        return self._send(oldest[1].shape_key, _UTILIZATION if self._delay else _NO_DELAY)

    def _send(self, shape: Hashable, reason: Reason) -> Formed:
        rows, tickets, members = [], [], []
        end = 0  # behind the highest row with a request
        for sequence in self._rows:
            if sequence is None:
                rows.append(_EMPTY)
            elif sequence.offered and (ticket := sequence.head) is not None and ticket.shape_key == shape:
                sequence.pop()
                sequence.offered = False
                tickets.append(ticket.id)
                members.append(sequence)
                start = ticket.sequence_start or not sequence.begun
                rows.append(Row(ticket.id, sequence.number, start, ticket.sequence_end and sequence.closed))
                end = len(rows)
            else:
                rows.append(Row(0, sequence.number))
        del rows[end:]
        self._ready -= len(tickets)
        if len(tickets) == self._most:
            reason = _FULL
        return Dispatch(self._instance, tuple(tickets), reason, tuple(rows)), members

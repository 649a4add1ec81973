"""The oldest strategy: batches of the oldest requests of an instance's sequences, one of each."""

from bisect import bisect_right
from collections.abc import Container

from naiad.scheduler import Dispatch
from naiad_kit.sequences import Row
from naiad_scheduler_sequence.batcher import Formed
from naiad_scheduler_sequence.heads import Head, Heads
from naiad_scheduler_sequence.reasons import Reason
from naiad_scheduler_sequence.sequences import LiveSequence

# taken out of the class once: a look into an enum costs 0.1 µs
_FULL, _PREFERRED, _SHAPE, _DELAY, _NO_DELAY = (
    Reason.FULL,
    Reason.PREFERRED,
    Reason.SHAPE,
    Reason.DELAY,
    Reason.NO_DELAY,
)


class OldestBatcher:
    """Requests in the order of their arrival, as many as share a shape.

    A batch goes at the largest preferred size that there is; below all of them it waits until its oldest request is
    `delay` seconds old, and then takes along what `max_batch_size` allows. The batch that waits is remembered, so that
    asking again looks at nothing twice.
    """

    __slots__ = (
        "_candidates",
        "_delay",
        "_gone",
        "_heads",
        "_instance",
        "_max",
        "_open",
        "_sizes",
        "_waiting",
        "wake_at",
    )

    def __init__(
        self,
        instance: int,
        waiting: Container[int],
        *,
        max_batch_size: int,
        preferred_sizes: frozenset[int],
        delay: float,
    ) -> None:
        self._instance = instance
        self._waiting = waiting
        self._max = max_batch_size
        self._sizes = sorted(preferred_sizes)
        self._delay = delay
        self._heads = Heads(waiting)
        self._open: list[Head] = []  # taken off the heap for the next batch, the oldest first
        self._gone = False  # some of these may wait no longer
        self._candidates = 0
        self.wake_at: float | None = None

    def enter(self, sequence: LiveSequence, row: int) -> None:
        """The sequence is a candidate."""
        self._candidates += 1

    def leave(self, sequence: LiveSequence, row: int) -> None:
        """The sequence is no candidate any more."""
        self._candidates -= 1
        self._gone = self._gone or sequence.head is not None

    def offer(self, sequence: LiveSequence) -> None:
        """Queue the first request of the sequence; the open batch is queued again if that request is older."""
        head = sequence.head
        if self._open and head is not None and head.id < self._open[-1][0]:
            self._heads.put_back(self._open)
            self._open = []
        self._heads.push(sequence)
        self._heads.tidy(self._candidates)

    def form(self, now: float) -> Formed | None:
        """A batch of a preferred size, or a smaller one once its delay has passed or no request can join it."""
        self.wake_at = None
        if self._gone:
            self._open = [head for head in self._open if head[0] in self._waiting]
            self._gone = False
        stop = self._grow(self._sizes[-1])
        if not self._open:
            return None
        size, delay = len(self._open), self._delay
        end = self._open[0][1].arrival + delay
        expired = not delay or now >= end
        below = bisect_right(self._sizes, size)
        if below and not (delay and expired):
            preferred = self._sizes[below - 1]
            return self._send(preferred, _FULL if preferred == self._max else _PREFERRED)
        if expired:
            stop = self._grow(self._max)
            size = len(self._open)
            return self._send(size, _FULL if size == self._max else stop or (_DELAY if delay else _NO_DELAY))
        if stop is None:
            self.wake_at = end
            return None
        return self._send(size, stop)

    def _grow(self, limit: int) -> Reason | None:
        """Take requests off the heap up to that many; the answer says what stopped it, None when nothing did."""
        batch, heads = self._open, self._heads
        while len(batch) < limit:
            head = heads.first()
            if head is None:
                return None
            if batch and head[1].shape_key != batch[0][1].shape_key:
                return _SHAPE
            heads.drop_first()
            batch.append(head)
        return None

    def _send(self, size: int, reason: Reason) -> Formed:
        batch, self._open = self._open[:size], self._open[size:]
        rows, members = [], []
        for number, ticket, sequence in batch:
            sequence.pop()
            start = ticket.sequence_start or not sequence.begun
            rows.append(Row(number, sequence.number, start, ticket.sequence_end and sequence.closed))
            members.append(sequence)
        return Dispatch(self._instance, tuple([head[0] for head in batch]), reason, tuple(rows)), members

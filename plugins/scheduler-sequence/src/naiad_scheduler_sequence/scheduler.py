"""The sequence batcher: every sequence goes to one slot of one instance, request by request, in order."""

from collections.abc import Callable, Sequence

from naiad.scheduler import Decision, Dispatch, Drop, Ticket
from naiad_scheduler_sequence.direct import Batcher
from naiad_scheduler_sequence.refusals import Entrance
from naiad_scheduler_sequence.sequences import LiveSequence
from naiad_scheduler_sequence.slots import Slots


class SequenceScheduler:
    """Gives each sequence a slot, or a place in the backlog, and lets the batcher of each instance form its batches."""

    def __init__(
        self, *, entrance: Entrance, slots: Slots, batchers: Callable[[dict[int, LiveSequence]], list[Batcher]]
    ) -> None:
        self.preserves_ordering = False
        self._entrance = entrance
        self._slots = slots
        self._waiting: dict[int, LiveSequence] = {}
        self._batchers = batchers(self._waiting)
        self._open: dict[int | str, LiveSequence] = {}
        self._backlog: dict[int, LiveSequence] = {}
        self._last_number = 0

    def arrive(self, ticket: Ticket) -> Drop | None:
        """Queue a ticket in its sequence."""
        refusal = self._entrance.refusal(ticket)
        if refusal is not None:
            return refusal
        sequence = self._open.get(ticket.sequence_id)
        if sequence is None:
            if not ticket.sequence_start:
                return self._entrance.no_start(ticket)
            sequence = self._new(ticket)
        self._waiting[ticket.id] = sequence
        sequence.tickets.append(ticket)
        if ticket.sequence_end:
            sequence.closed = True
            del self._open[ticket.sequence_id]
        if sequence.slot >= 0 and len(sequence.tickets) == 1:
            self._batchers[self._slots.instance_of(sequence.slot)].offer(sequence)
        return None

    def settle(self, tickets: Sequence[int], now: float) -> bool:
        """Forget these."""
        return False

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        """A batch for each idle instance that has requests."""
        dispatches: list[Dispatch] = []
        for instance in idle:
            batcher = self._batchers[instance]
            formed = batcher.form(now)
            if formed is None:
                continue
            dispatch, sequences = formed
            dispatches.append(dispatch)
            for ticket, sequence in zip(dispatch.tickets, sequences, strict=True):
                del self._waiting[ticket]
                sequence.begun = True
                if sequence.closed and not sequence.tickets:
                    self._release(sequence)
                elif sequence.tickets:
                    batcher.offer(sequence)
        self._fill()
        return Decision(tuple(dispatches))

    def _new(self, ticket: Ticket) -> LiveSequence:
        self._last_number += 1
        sequence = self._open[ticket.sequence_id] = LiveSequence(self._last_number, ticket.sequence_id)
        slot = -1 if self._backlog else self._slots.take()
        if slot < 0:
            self._backlog[sequence.number] = sequence
        else:
            self._enter(sequence, slot)
        return sequence

    def _enter(self, sequence: LiveSequence, slot: int) -> None:
        sequence.slot = slot
        batcher = self._batchers[self._slots.instance_of(slot)]
        batcher.enter(sequence, self._slots.row_of(slot))
        if sequence.tickets:
            batcher.offer(sequence)

    def _release(self, sequence: LiveSequence) -> None:
        slot, sequence.slot = sequence.slot, -1
        self._batchers[self._slots.instance_of(slot)].leave(sequence, self._slots.row_of(slot))
        self._slots.give_back(slot)

    def _fill(self) -> None:
        while self._backlog and (slot := self._slots.take()) >= 0:
            self._enter(self._backlog.pop(next(iter(self._backlog))), slot)

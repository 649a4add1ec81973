"""The sequence batcher: assigns each sequence to a slot of one instance, and keeps its requests in order."""

import math
from collections.abc import Callable, Sequence

from naiad.scheduler import NOTHING, Decision, Dispatch, Drop, DropReason, Ticket
from naiad_kit.sequences import SequenceEndReason
from naiad_scheduler_sequence.admission import AdmissionRules
from naiad_scheduler_sequence.backlog import Backlog
from naiad_scheduler_sequence.batcher import Batcher
from naiad_scheduler_sequence.idle_timeouts import IdleTimeouts
from naiad_scheduler_sequence.pending_events import PendingEvents
from naiad_scheduler_sequence.sequences import LiveSequence
from naiad_scheduler_sequence.slots import Slots

MakeBatchers = Callable[[dict[int, LiveSequence]], list[Batcher]]
"""Makes the batcher of every instance; its argument is the sequence of each waiting ticket."""


class SequenceScheduler:
    """Gives each sequence a slot, or adds it to the backlog, and lets the batcher of each instance form its batches.

    With `overlaps` an instance that is idle may get the next request of a sequence whose earlier one still streams.
    With `frees_early` a sequence gives its slot up when its last request is sent, otherwise when that is answered.
    An `iterative` scheduler makes a sequence of every request, which lasts as long as the model asks to see it again.
    """

    def __init__(
        self,
        *,
        admission: AdmissionRules,
        slots: Slots,
        batchers: MakeBatchers,
        idle_limit: float,
        overlaps: bool,
        frees_early: bool,
        iterative: bool,
        orders_dispatches: bool = False,
    ) -> None:
        self.orders_dispatches = orders_dispatches
        self._admission = admission
        self._slots = slots
        self._overlaps = overlaps
        self._frees_early = frees_early
        self._iterative = iterative
        self._waiting: dict[int, LiveSequence] = {}  # by ticket
        self._running: dict[int, LiveSequence] = {}  # by ticket
        self._open: dict[int | str, LiveSequence] = {}  # by correlation id, those whose last request is still to come
        self._batchers = batchers(self._waiting)
        self._placed: list[dict[int, LiveSequence]] = [{} for _ in self._batchers]  # by instance, by number
        self._busy: set[int] = set()  # instances that have a batch and have not been seen idle since
        self._backlog = Backlog()
        self._idle_timeouts = IdleTimeouts(idle_limit)
        self._pending_events = PendingEvents()
        self._last_number = 0

    @property
    def backlog(self) -> int:
        """How many sequences wait for a slot."""
        return len(self._backlog)

    # What happens

    def arrive(self, ticket: Ticket) -> Drop | None:
        """Queue a ticket in its sequence; refuse one of no sequence."""
        refusal = self._admission.refusal(ticket)
        if refusal is not None:
            return refusal
        sequence = self._sequence_of(ticket)
        if isinstance(sequence, Drop):
            return sequence
        self._waiting[ticket.id] = sequence
        sequence.push(ticket)
        if ticket.sequence_end and not self._iterative:
            sequence.closed = True
            del self._open[ticket.sequence_id]
        if sequence.instance < 0:
            if ticket.timeout:
                self._backlog.limit(sequence, ticket)
        elif sequence.head is ticket:
            sequence.silent_until = math.inf
            if self._overlaps or not sequence.running:
                self._batchers[sequence.instance].offer(sequence)
        return None

    def settle(self, tickets: Sequence[int], now: float) -> bool:
        """A ticket that is cancelled while it waits ends its sequence; after an answered one the next may be sent.

        True when that changes what can be done, and no instance will be free soon that asks anyhow.
        """
        decide_again = False
        for ticket in tickets:
            sequence = self._running.pop(ticket, None)
            if sequence is not None:
                sequence.running -= 1
                if not sequence.over and not sequence.running:
                    decide_again = self._answered(sequence, now) or decide_again
                continue
            sequence = self._waiting.pop(ticket, None)
            if sequence is None:
                self._pending_events.forget(ticket)
            else:
                self._stop(sequence, DropReason.CANCELLED, "", SequenceEndReason.CANCELLED, without=ticket)
                decide_again = decide_again or bool(self._pending_events) or bool(self._backlog)
        return decide_again

    def lost(self, instance: int, now: float) -> None:
        """The sequences of that instance are over; it gets no other before it is seen idle."""
        for sequence in list(self._placed[instance].values()):
            self._stop(sequence, DropReason.LOST, self._admission.lost(sequence.id))
        self._busy.discard(instance)
        self._slots.gone(instance)

    # What to do

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        """End what was silent or waited too long, fill free slots, and form a batch for each idle instance."""
        self._make_room(now, idle)
        dispatches: list[Dispatch] = []
        wake_at = self._idle_timeouts.wake_at
        for instance in idle:
            self._busy.discard(instance)
            batcher = self._batchers[instance]
            formed = batcher.form(now)
            if formed is not None:
                dispatches.append(formed[0])
                self._busy.add(instance)
                for ticket, sequence in zip(formed[0].tickets, formed[1], strict=True):
                    self._sent(ticket, sequence, batcher)
            elif batcher.wake_at is not None and (wake_at is None or batcher.wake_at < wake_at):
                wake_at = batcher.wake_at
        if self._backlog:
            self._fill()
            deadline = self._backlog.next_deadline()
            if deadline is not None and (wake_at is None or deadline < wake_at):
                wake_at = deadline
        if not self._pending_events:
            return Decision(tuple(dispatches), (), wake_at) if dispatches or wake_at is not None else NOTHING
        drops, ended = self._pending_events.take()
        return Decision(tuple(dispatches), drops, wake_at, ended)

    def _make_room(self, now: float, idle: Sequence[int]) -> None:
        if self._slots.any_gone:
            for instance in idle:
                self._slots.back(instance)
        for sequence in self._idle_timeouts.take_due(now):
            self._stop(sequence, DropReason.CANCELLED, "", SequenceEndReason.IDLE)
        if self._backlog:
            for sequence in self._backlog.due(now):
                self._stop(sequence, DropReason.TIMEOUT, self._admission.too_late())
            self._fill()

    # The life of a sequence

    def _sequence_of(self, ticket: Ticket) -> LiveSequence | Drop:
        if ticket.continues:
            sequence = self._running.get(ticket.continues)
            if sequence is None or sequence.over:
                return Drop((ticket.id,), DropReason.LOST, self._admission.lost(ticket.sequence_id))
            return sequence
        if self._iterative:
            return self._new(ticket)
        sequence = self._open.get(ticket.sequence_id)
        if sequence is not None:
            return sequence
        if not ticket.sequence_start:
            return self._admission.no_start(ticket)
        sequence = self._open[ticket.sequence_id] = self._new(ticket)
        return sequence

    def _new(self, ticket: Ticket) -> LiveSequence:
        self._last_number += 1
        sequence = LiveSequence(self._last_number, ticket.sequence_id)
        slot = -1 if self._backlog else self._slots.take()
        if slot < 0:
            self._backlog.add(sequence)
        else:
            self._enter(sequence, slot)
        return sequence

    def _fill(self) -> None:
        while self._backlog and (slot := self._slots.take()) >= 0:
            self._enter(self._backlog.pop(), slot)

    def _enter(self, sequence: LiveSequence, slot: int) -> None:
        sequence.slot = slot
        instance = sequence.instance = self._slots.instance_of(slot)
        self._placed[instance][sequence.number] = sequence
        batcher = self._batchers[instance]
        batcher.enter(sequence, self._slots.row_of(slot))
        if sequence.head is not None:
            batcher.offer(sequence)

    def _sent(self, ticket: int, sequence: LiveSequence, batcher: Batcher) -> None:
        del self._waiting[ticket]
        self._running[ticket] = sequence
        sequence.running += 1
        sequence.begun = True
        if sequence.head is not None:
            if self._overlaps:
                batcher.offer(sequence)
        elif sequence.closed and self._frees_early:
            self._finish(sequence)

    def _answered(self, sequence: LiveSequence, now: float) -> bool:
        """An instance has nothing of the sequence any more; True asks for a decision."""
        instance = sequence.instance
        if sequence.head is not None:
            if self._overlaps:
                return False
            self._batchers[instance].offer(sequence)
            return instance not in self._busy
        if sequence.closed or self._iterative:
            self._finish(sequence)
            return bool(self._backlog) and instance not in self._busy
        return self._idle_timeouts.begin(sequence, now)

    def _finish(self, sequence: LiveSequence) -> None:
        """The sequence is over and its slot free."""
        sequence.over = True
        self._idle_timeouts.over(sequence)
        slot, instance = sequence.slot, sequence.instance
        sequence.slot = sequence.instance = -1
        del self._placed[instance][sequence.number]
        self._batchers[instance].leave(sequence, self._slots.row_of(slot))
        self._slots.give_back(slot)

    def _stop(
        self,
        sequence: LiveSequence,
        reason: DropReason,
        detail: str,
        end: SequenceEndReason | None = None,
        without: int = 0,
    ) -> None:
        """End the sequence early: drop its waiting tickets, and report the end to its model if it has a slot."""
        if not sequence.closed and not self._iterative:
            del self._open[sequence.id]
        if sequence.instance < 0:
            sequence.over = True
            self._backlog.remove(sequence)
        else:
            if end is not None and sequence.begun:
                self._pending_events.end(sequence.instance, sequence.number, end)
            self._finish(sequence)
        for ticket in sequence.take_all():
            self._waiting.pop(ticket.id, None)
            if ticket.id != without:
                self._pending_events.drop(ticket.id, reason, detail)

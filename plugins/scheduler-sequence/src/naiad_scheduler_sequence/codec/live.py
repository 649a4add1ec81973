"""Live sequences of one model version: their slots, and the states between their requests."""

from collections.abc import Callable

from naiad.scheduler import Ticket
from naiad_kit.sequences import Row, SequenceEndReason
from naiad_scheduler_sequence.codec.rows import BatchRow, LiveSequence
from naiad_scheduler_sequence.codec.tensors import SequenceTensors

NotifyInstance = Callable[[int, int | str, SequenceEndReason], None]
"""Tells the instance of a slot that the sequence with that correlation id is over, and why."""


class LiveSequences:
    """Keeps what is known of each sequence, by the number that the scheduler has given it.

    It also keeps the open correlation ids: those that a request has started and no request has ended. They are known
    from the arrival on, long before a scheduler has a slot for them. Lives on the event loop's thread.
    """

    def __init__(self, tensors: SequenceTensors, notify: NotifyInstance, recount: Callable[[], None]) -> None:
        """`recount` is called whenever none is open any more."""
        self._tensors = tensors
        self._notify = notify
        self._recount = recount
        self._by_number: dict[int, LiveSequence] = {}
        self._open: dict[int | str, int] = {}  # the ticket that started it, by correlation id

    def __len__(self) -> int:
        return len(self._by_number)

    @property
    def open(self) -> int:
        """Of how many sequences further requests may come."""
        return len(self._open)

    def is_open(self, correlation_id: int | str) -> bool:
        """Whether further requests of that sequence may come."""
        return correlation_id in self._open

    # What callers do

    def arrived(self, ticket: Ticket) -> None:
        """The scheduler has taken the ticket in."""
        if self._tensors.iterative:
            return
        if ticket.sequence_end:
            self.leave(ticket.sequence_id)
        elif ticket.sequence_start:
            self._open.setdefault(ticket.sequence_id, ticket.id)

    def given_up(self, ticket: Ticket) -> None:
        """The ticket was given up while it waited, and so is the sequence that it belongs to."""
        self._close(ticket.sequence_id, ticket.id)

    def leave(self, correlation_id: int | str) -> None:
        """No further requests of that sequence will come here."""
        if self._open.pop(correlation_id, None) is not None and not self._open:
            self._recount()

    # What instances do

    def enter(self, row: Row, ticket: Ticket, slot: int) -> LiveSequence:
        """The sequence of a row that executes at that slot. It is created with the first row of its number."""
        live = self._by_number.get(row.sequence)
        if live is None:
            # two callers of an iterative model that say the same id are no sequence
            correlation_id = row.sequence if self._tensors.iterative else ticket.sequence_id or row.sequence
            live = self._by_number[row.sequence] = LiveSequence(
                row.sequence,
                correlation_id,
                slot,
                ticket.id,
                self._tensors.initial(),
                self._tensors.controls.correlation(correlation_id),
            )
        elif row.start:
            live.states = self._tensors.initial()
            live.starts += 1
        return live

    def carry(self, row: BatchRow) -> None:
        """Take over the states that a row leaves, unless its sequence is over or has started anew meanwhile."""
        live = row.sequence
        if live is None or not row.next_states or not self._lives(live) or live.starts != row.start:
            return
        states = list(live.states)
        for index, array in row.next_states.items():
            states[index] = self._tensors.states[index].kept(states[index], array)
        live.states = states

    def finished(self, row: BatchRow, reason: SequenceEndReason) -> None:
        """That was the last request of a sequence."""
        if row.sequence is not None and self._lives(row.sequence):
            self.ended(row.sequence.number, reason)

    def ended(self, number: int, reason: SequenceEndReason) -> None:
        """The sequence has ended: notify its instance."""
        live = self._by_number.pop(number, None)
        if live is not None:
            self._close(live.correlation_id, live.first)
            self._notify(live.slot, live.correlation_id, reason)

    def lost(self, slot: int) -> None:
        """What the instance of that slot knew is lost with it."""
        for number in [number for number, each in self._by_number.items() if each.slot == slot]:
            live = self._by_number.pop(number)
            self._close(live.correlation_id, live.first)

    def end_all(self, reason: SequenceEndReason) -> None:
        """All sequences are over."""
        for number in list(self._by_number):
            self.ended(number, reason)
        self._open.clear()
        self._recount()

    def _lives(self, sequence: LiveSequence) -> bool:
        return self._by_number.get(sequence.number) is sequence

    def _close(self, correlation_id: int | str, ticket: int) -> None:
        """The sequence with that ticket is over; a later one may bear the same id."""
        if self._open.get(correlation_id, ticket + 1) <= ticket:
            self.leave(correlation_id)

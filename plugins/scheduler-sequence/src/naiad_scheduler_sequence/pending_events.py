"""Pending events of the sequence scheduler: drops and sequence ends that its next decision reports."""

from naiad.scheduler import Drop, DropReason
from naiad_kit.sequences import SequenceEnd, SequenceEndReason


class PendingEvents:
    """Tickets to be dropped and sequences to be ended."""

    __slots__ = ("_drops", "_ended")

    def __init__(self) -> None:
        self._drops: dict[int, tuple[DropReason, str]] = {}
        self._ended: list[SequenceEnd] = []

    def __bool__(self) -> bool:
        """Whether there is an event to report."""
        return bool(self._drops) or bool(self._ended)

    def drop(self, ticket: int, reason: DropReason, detail: str) -> None:
        """Report this ticket as dropped."""
        self._drops[ticket] = (reason, detail)

    def forget(self, ticket: int) -> None:
        """Do not report this ticket: its caller cancelled it."""
        self._drops.pop(ticket, None)

    def end(self, instance: int, sequence: int, reason: SequenceEndReason) -> None:
        """Report to the model that this sequence has ended."""
        self._ended.append(SequenceEnd(instance, sequence, reason))

    def take(self) -> tuple[tuple[Drop, ...], tuple[SequenceEnd, ...]]:
        """Remove and return all events."""
        together: dict[tuple[DropReason, str], list[int]] = {}
        for ticket, why in self._drops.items():
            together.setdefault(why, []).append(ticket)
        drops = tuple(Drop(tuple(tickets), *why) for why, tickets in together.items())
        ended = tuple(self._ended)
        self._drops, self._ended = {}, []
        return drops, ended

"""Batch forming for one instance: what the direct and the oldest strategy have in common."""

from typing import Protocol

from naiad.scheduler import Dispatch
from naiad_scheduler_sequence.sequences import LiveSequence

Formed = tuple[Dispatch, list[LiveSequence]]
"""A batch, and the sequence of each of its tickets."""


class Batcher(Protocol):
    """Forms the batches of one instance out of the sequences that have a slot there."""

    wake_at: float | None
    """When the batch that waits is to be sent at the latest; said by `form`."""

    def enter(self, sequence: LiveSequence, row: int) -> None:
        """A sequence has got this slot."""
        ...

    def leave(self, sequence: LiveSequence, row: int) -> None:
        """A sequence has given up its slot.

        Called before its waiting tickets are removed: an offered one is still its head.
        """
        ...

    def offer(self, sequence: LiveSequence) -> None:
        """The first of the tickets that wait in it may run now."""
        ...

    def form(self, now: float) -> Formed | None:
        """The next batch, its tickets taken from their sequences; None when there is nothing to send yet."""
        ...

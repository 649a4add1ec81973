"""Rows of batches and ends of sequences: what a scheduler of sequences reports to its batch codec and to instances."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a batch of sequences, of which `Dispatch.rows` has all.

    `ticket` is the request in it; 0 is a row without one, which keeps the indices of the others. `sequence` is the
    number that the scheduler has given to the sequence: from 1 up, used once, whatever the caller's correlation id.
    `start` and `end` say that this is its first or its last request; a sequence may start anew.
    """

    ticket: int
    sequence: int = 0
    start: bool = False
    end: bool = False


class SequenceEndReason(StrEnum):
    """Why a sequence is over."""

    END = "end"
    """Its last request was executed."""
    IDLE = "idle"
    """It sent no request for too long."""
    CANCELLED = "cancelled"
    """A request of it was taken back."""
    UNLOAD = "unload"
    """The model goes out of service."""


@dataclass(frozen=True, slots=True)
class SequenceEnd:
    """For `Decision.ended`: a sequence that is over without a last request; that instance has executed some of it."""

    instance: int
    sequence: int
    reason: SequenceEndReason

"""Rows of batches and ends of sequences: what a scheduler of sequences reports to its batch codec and to instances."""

import inspect
import logging
from dataclasses import dataclass
from enum import StrEnum

from naiad.backend import Instance

_logger = logging.getLogger("naiad.model")


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


def notify_end(correlation_id: int | str, reason: SequenceEndReason, instance: Instance) -> None:
    """Call `sequence_ended` of an instance that has it. What it raises is logged, as no request waits for it.

    So is a coroutine, which nobody awaits.
    """
    listen = getattr(instance, "sequence_ended", None)
    if listen is None:
        return
    try:
        answer = listen(correlation_id, reason)
        if inspect.iscoroutine(answer):
            answer.close()
            raise TypeError("its sequence_ended is an 'async def', which is not awaited here: make it a plain 'def'")
    except Exception:
        _logger.exception("an instance failed to take note that sequence %r is over (%s)", correlation_id, reason)

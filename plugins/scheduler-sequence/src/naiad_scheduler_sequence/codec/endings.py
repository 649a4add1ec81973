"""Sequence end notifications: calls an instance's `sequence_ended` on the instance's own thread."""

import inspect
import logging

from naiad.backend import Instance
from naiad_kit.sequences import SequenceEndReason

_logger = logging.getLogger("naiad.model")


def notify_end(correlation_id: int | str, reason: SequenceEndReason, instance: Instance) -> None:
    """Notify an instance; what it raises is logged, because no request waits for it, and so is a coroutine."""
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

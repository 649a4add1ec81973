"""Calls that a stopping server cuts off, and the warning that names them."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

_logger = logging.getLogger("naiad.grpc")


@dataclass(frozen=True, slots=True, order=True)
class UnfinishedCall:
    """A call in flight: the path of its RPC, and whether its request has come whole (of a stream: has begun)."""

    path: str
    is_complete: bool


class CallInFlight(Protocol):
    """A call that has not been answered."""

    def unfinished(self) -> UnfinishedCall:
        """The call for the warning that it is cut off."""
        ...


def warn_of_unfinished(calls: Iterable[UnfinishedCall], grace: float) -> None:
    """Warn that these calls did not end within `grace` seconds and are cut off; no warning without a call."""
    counted = sorted(Counter(calls).items())
    total = sum(count for _, count in counted)
    if total:
        _logger.warning(
            "gRPC: the server stops, and cuts off %d %s that did not end within %.3g s: %s",
            total,
            "call" if total == 1 else "calls",
            grace,
            ", ".join(_described(call, count) for call, count in counted),
        )


def _described(call: UnfinishedCall, count: int) -> str:
    return f"{count} of {call.path}{'' if call.is_complete else ' (request incomplete)'}"

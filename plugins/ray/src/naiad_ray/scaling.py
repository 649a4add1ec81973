"""Autoscaling policy by the requests that wait in the queues of models, for `autoscale: {by: queue}`."""

from math import ceil
from typing import Any

QUEUE = "queue"
"""The name of the metric that replicas report."""

FEW = 0.1
"""The part of the target of one replica below which a whole group counts as without a queue."""


class ByQueue:
    """The policy: so many replicas that `target` requests wait in each."""

    def __init__(self, target: float) -> None:
        self._target = target

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """The replicas that a group should have, and the policy's state. Called by the controller of Ray Serve."""
        waiting = sum((context.aggregated_metrics or {}).get(QUEUE, {}).values())
        return replicas_for(waiting, self._target, context.current_num_replicas), {}


def replicas_for(waiting: float, target: float, now: int) -> int:
    """The replicas for so many waiting requests. Without a queue there is one replica less at a time.

    A queue that is shorter than its target says that the replicas are just enough: the length of a queue does not say
    how many of them could go.
    """
    if waiting < FEW * target:
        return max(1, now - 1)
    return max(now, ceil(waiting / target))

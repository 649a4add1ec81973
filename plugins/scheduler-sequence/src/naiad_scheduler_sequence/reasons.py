"""Reasons of decisions: why a batch was dispatched, as counted in the metrics of each model."""

from enum import StrEnum


class Reason(StrEnum):
    """What closed a batch.

    FULL: it holds `max_batch_size` requests. UTILIZATION: enough slots have a request. PREFERRED: it has a preferred
    size, and nothing larger was in sight. SHAPE: the next request cannot share a batch with these. DELAY: the oldest
    request has waited `max_queue_delay_microseconds`. NO_DELAY: there was nothing else to send and no delay is
    configured.
    """

    FULL = "full"
    UTILIZATION = "minimum slot utilization"
    PREFERRED = "preferred size"
    SHAPE = "shape changed"
    DELAY = "delay expired"
    NO_DELAY = "no delay"

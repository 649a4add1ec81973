"""Reasons of decisions: why a batch was dispatched, as counted in the metrics of each model."""

from enum import StrEnum


class Reason(StrEnum):
    """What closed a batch.

    FULL: it holds `max_batch_size` items. PREFERRED: it has a preferred size, and nothing larger was in sight.
    SHAPE: the next request cannot share a batch with these. NEXT_TOO_LARGE: the next request would pass
    `max_batch_size`. PAST_PREFERRED: no preferred size can be reached any more. DELAY: the oldest request has waited
    `max_queue_delay_microseconds`. NO_DELAY: there was nothing else to send and no delay is configured.
    """

    FULL = "full"
    PREFERRED = "preferred size"
    SHAPE = "shape changed"
    NEXT_TOO_LARGE = "next request does not fit"
    PAST_PREFERRED = "past every preferred size"
    DELAY = "delay expired"
    NO_DELAY = "no delay"

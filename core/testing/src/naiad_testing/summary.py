"""The figures of a simulation: batch sizes, reasons, waits, drops, throughput."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from naiad_testing.history import Ended, Log, Lost, Sent, SequenceOver, Waited


@dataclass(frozen=True, slots=True)
class Summary:
    """What a log comes to. Times are in seconds; waits are those of the requests that were sent.

    `batch_sizes` and `reasons` count batches, `dropped` requests. `span` lasts from the first arrival to the end of the
    last batch, and `utilisation` is the share of it in which the instances were busy.
    """

    requests: int
    sent: int
    items: int
    departed: int
    dropped: Mapping[str, int]
    batches: int
    batch_sizes: Mapping[int, int]
    reasons: Mapping[str, int]
    wait_p50: float
    wait_p99: float
    wait_max: float
    span: float
    utilisation: float

    @property
    def mean_batch_size(self) -> float:
        """Items a batch."""
        return self.items / self.batches if self.batches else 0.0

    @property
    def throughput(self) -> float:
        """Requests sent a second."""
        return self.sent / self.span if self.span else 0.0


def summarise(log: Log) -> Summary:
    """Count and measure what a log tells."""
    sent = log.sent
    waits = sorted(batch.time - log.arrival_of(ticket).time for batch in sent for ticket in batch.tickets)
    dropped: Counter[str] = Counter()
    for drop in log.dropped:
        dropped[str(drop.reason)] += len(drop.tickets)
    start = log.arrivals[0].time if log.arrivals else 0.0
    times = (entry.time for entry in log.entries if not isinstance(entry, Waited | SequenceOver))
    span = max(times, default=start) - start
    return Summary(
        requests=len(log.arrivals),
        sent=len(waits),
        items=sum(batch.size for batch in sent),
        departed=len(log.departed),
        dropped=dict(sorted(dropped.items())),
        batches=len(sent),
        batch_sizes=dict(sorted(Counter(batch.size for batch in sent).items())),
        reasons=dict(Counter(batch.reason for batch in sent).most_common()),
        wait_p50=_percentile(waits, 0.50),
        wait_p99=_percentile(waits, 0.99),
        wait_max=waits[-1] if waits else 0.0,
        span=span,
        utilisation=_busy_seconds(log) / (span * log.instances) if span else 0.0,
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that is not less than this share of all of them (nearest rank)."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else 0.0


def _busy_seconds(log: Log) -> float:
    started: dict[int, float] = {}
    busy = 0.0
    for entry in log.entries:
        if isinstance(entry, Sent):
            started[entry.instance] = entry.time
        elif isinstance(entry, Ended | Lost) and entry.instance in started:
            busy += entry.time - started.pop(entry.instance)
    return busy

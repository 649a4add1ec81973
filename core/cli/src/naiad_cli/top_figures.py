"""Figures of `naiad top`: reads Prometheus text, and turns two readings into rates and quantiles of each model."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

_DURATION = "naiad_request_duration_seconds_bucket"
_BUSY = "naiad_instance_busy_seconds"

Version = tuple[str, str]
"""A model's name and its version."""


@dataclass(slots=True)
class Counters:
    """The counters and gauges of one version, and of its latency histogram the requests up to each bound in seconds."""

    succeeded: float = 0.0
    failed: float = 0.0
    items: float = 0.0
    executions: float = 0.0
    queued: float = 0.0
    in_flight: float = 0.0
    busy: float = 0.0
    buckets: dict[float, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figures:
    """One version between two readings: requests and errors per second, quantiles in ms; NaN without requests.

    `busy` is for how many seconds the longest execution has run.
    """

    rate: float
    p50: float
    p99: float
    queued: int
    in_flight: int
    busy: float
    errors: float
    mean_batch: float


_FIELDS: Mapping[str, str] = {
    "nv_inference_request_success": "succeeded",
    "nv_inference_request_failure": "failed",
    "nv_inference_count": "items",
    "nv_inference_exec_count": "executions",
    "naiad_queue_depth": "queued",
    "naiad_requests_in_flight": "in_flight",
}


def read_metrics(text: str) -> dict[Version, Counters]:
    """The counters of each version in a metrics page: sums of its samples, of `busy` the largest."""
    versions: dict[Version, Counters] = defaultdict(Counters)
    for line in text.splitlines():
        sample = _SAMPLE.match(line)
        if sample is None or (sample[1] not in _FIELDS and sample[1] not in (_DURATION, _BUSY)):
            continue
        labels = {name: _unescaped(value) for name, value in _LABEL.findall(sample[2] or "")}
        if "model" not in labels:
            continue
        counters = versions[labels["model"], labels.get("version", "")]
        value = float(sample[3])
        if sample[1] == _DURATION:
            bound = float(labels["le"])
            counters.buckets[bound] = counters.buckets.get(bound, 0.0) + value
        elif sample[1] == _BUSY:
            counters.busy = max(counters.busy, value)
        else:
            name = _FIELDS[sample[1]]
            setattr(counters, name, getattr(counters, name) + value)
    return dict(versions)


def figures_between(before: Counters, after: Counters, seconds: float) -> Figures:
    """What happened between two readings of a version; one that was loaded anew counts from zero."""
    if after.succeeded < before.succeeded or after.failed < before.failed:
        before = Counters()
    executions = after.executions - before.executions
    counts = [(bound, count - before.buckets.get(bound, 0.0)) for bound, count in sorted(after.buckets.items())]
    return Figures(
        rate=(after.succeeded + after.failed - before.succeeded - before.failed) / seconds,
        p50=quantile(counts, 0.5) * 1e3,
        p99=quantile(counts, 0.99) * 1e3,
        queued=int(after.queued),
        in_flight=int(after.in_flight),
        busy=after.busy,
        errors=(after.failed - before.failed) / seconds,
        mean_batch=(after.items - before.items) / executions if executions else math.nan,
    )


def quantile(counts: Sequence[tuple[float, float]], rank: float) -> float:
    """The quantile of a histogram of cumulative counts by ascending bound, linear within a bucket; NaN without any.

    What is above the last finite bound counts as that bound.
    """
    total = counts[-1][1] if counts else 0.0
    if not total:
        return math.nan
    below_bound, below = 0.0, 0.0
    for bound, count in counts:
        if count >= rank * total:
            if math.isinf(bound) or count == below:
                return below_bound
            return below_bound + (bound - below_bound) * (rank * total - below) / (count - below)
        below_bound, below = bound, count
    return below_bound


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], text)

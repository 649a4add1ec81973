"""Readings of a model version's counters, and what two of them say of the time between: rates and quantiles. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub

from naiad.reports import VersionReport
from naiad_statistics.observers import KeepsDistributions

PHASES = ("request", "queue", "input", "infer", "output")
"""The phases of a latency in the order of the distributions that a metrics service keeps."""

Bounds = tuple[float, ...]
Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many durations fell into which bucket; `bounds` are seconds, and one more count is above them all."""

    bounds: Bounds
    counts: Counts

    def since(self, earlier: "Distribution") -> "Distribution":
        """The durations that came after an earlier reading."""
        if self.bounds != earlier.bounds:
            return self
        return Distribution(self.bounds, tuple(map(sub, self.counts, earlier.counts)))

    def plus(self, other: "Distribution") -> "Distribution":
        """The durations of both, where they have the same buckets."""
        if self.bounds != other.bounds:
            return self
        return Distribution(self.bounds, tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    def quantile(self, quantile: float, mean: float | None = None) -> float | None:
        """The duration in seconds at that quantile, interpolated within its bucket; None without any.

        With their mean it is at most what Markov's inequality allows, which is much less than the end of the first
        bucket where all durations are short.
        """
        total = sum(self.counts)
        if total <= 0:
            return None
        interpolated = self._interpolated(quantile * total)
        return interpolated if mean is None else min(interpolated, mean / (1 - quantile))

    def _interpolated(self, rank: float) -> float:
        below = 0.0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            if count and rank <= count:
                return below + (bound - below) * rank / count
            rank -= count
            below = bound
        return below


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one model version at the time `at` (seconds, monotonic).

    `queue` requests wait, `in_flight` wait, execute or stream. `distributions` are those of `PHASES`, () without
    metrics; `compute_ns` has the compute input, infer and output that were charged to `requests`.
    """

    at: float
    load: float
    requests: int
    failures: int
    executions: int
    inferences: int
    total_ns: int
    queue_ns: int
    compute_ns: tuple[int, int, int]
    queue: int
    in_flight: int
    distributions: tuple[Distribution, ...]

    @classmethod
    def of(cls, report: VersionReport, at: float) -> "Reading":
        """The reading of a report."""
        devices = report.devices
        return cls(
            at=at,
            load=report.load_seconds,
            requests=sum(each.requests for each in devices),
            failures=sum(report.failures.values()),
            executions=sum(each.executions for each in devices),
            inferences=sum(each.inferences for each in devices),
            total_ns=sum(each.success_ns for each in devices),
            queue_ns=sum(each.queue_ns for each in devices),
            compute_ns=tuple(sum(each.compute[phase].ns for each in devices) for phase in range(3)),  # type: ignore[arg-type]
            queue=report.waiting,
            in_flight=report.outstanding,
            distributions=_distributions([each.observer for each in devices]),
        )

    def continues(self, earlier: "Reading") -> bool:
        """Whether both are of the same load of the version: counters begin anew with each."""
        return self.load == earlier.load and self.requests >= earlier.requests and self.failures >= earlier.failures


@dataclass(frozen=True, slots=True)
class Phase:
    """What a phase took: mean, median and 99th percentile in seconds, None where nothing is known."""

    name: str
    mean: float | None
    p50: float | None
    p99: float | None


def phases(earlier: Reading | None, now: Reading) -> list[Phase]:
    """Each of `PHASES` for the requests that were answered since the earlier reading, or since the load."""
    requests = now.requests - (earlier.requests if earlier else 0)
    sums = (now.total_ns, now.queue_ns, *now.compute_ns)
    before = (earlier.total_ns, earlier.queue_ns, *earlier.compute_ns) if earlier else (0,) * len(sums)
    results = []
    for index, name in enumerate(PHASES):
        mean = (sums[index] - before[index]) / requests / 1e9 if requests > 0 else None
        between = _between(earlier, now, index)
        quantiles = (between.quantile(0.5, mean), between.quantile(0.99, mean)) if between else (None, None)
        results.append(Phase(name, mean, *quantiles))
    return results


@dataclass(frozen=True, slots=True)
class Point:
    """One version at one moment: requests and errors per second, latencies in seconds, queue, mean items of a batch."""

    at: float
    rate: float | None
    errors: float | None
    p50: float | None
    p99: float | None
    queue: int
    in_flight: int
    batch: float | None


def point(earlier: Reading | None, window: Reading | None, now: Reading) -> Point:
    """The rates since `earlier`, and the quantiles and batches since `window`; None is since the load."""
    seconds = now.at - earlier.at if earlier else 0.0
    rate = (now.requests - earlier.requests) / seconds if earlier and seconds > 0 else None
    errors = (now.failures - earlier.failures) / seconds if earlier and seconds > 0 else None
    executions = now.executions - (window.executions if window else 0)
    inferences = now.inferences - (window.inferences if window else 0)
    whole = _between(window, now, 0)
    requests = now.requests - (window.requests if window else 0)
    mean = (now.total_ns - (window.total_ns if window else 0)) / requests / 1e9 if requests > 0 else None
    return Point(
        at=now.at,
        rate=rate,
        errors=errors,
        p50=whole.quantile(0.5, mean) if whole else None,
        p99=whole.quantile(0.99, mean) if whole else None,
        queue=now.queue,
        in_flight=now.in_flight,
        batch=inferences / executions if executions > 0 else None,
    )


def _between(earlier: Reading | None, now: Reading, index: int) -> Distribution | None:
    if not now.distributions:
        return None
    distribution = now.distributions[index]
    return distribution.since(earlier.distributions[index]) if earlier and earlier.distributions else distribution


def _distributions(observers: Sequence[object]) -> tuple[Distribution, ...]:
    """Those of all devices together."""
    every = [
        [Distribution(tuple(bounds), tuple(counts)) for bounds, counts in each.distributions()]
        for each in observers
        if isinstance(each, KeepsDistributions)
    ]
    if not every:
        return ()
    together = every[0]
    for more in every[1:]:
        together = [one.plus(other) for one, other in zip(together, more, strict=True)]
    return tuple(together)

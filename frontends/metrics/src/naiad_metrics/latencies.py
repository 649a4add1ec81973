"""Latency distributions: histograms, which are always kept, and optional summaries over the last minute."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from naiad_kit.metrics import Distribution
from naiad_metrics.sliding import SlidingQuantiles

BOUNDS = (
    *(1e-5, 2.5e-5, 5e-5),  # what models in Python take for their input and output
    *(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0),
)
"""The upper bounds of the latency histograms' buckets in seconds; up to 31 of them cost a search five comparisons."""

FIRST_RESPONSE_BOUNDS = (100.0, 500.0, 2000.0, 5000.0)
"""Those of the first response in milliseconds."""

PHASES = ("request", "queue", "compute_input", "compute_infer", "compute_output")


class LatencyHistogram:
    """How many durations fell into which bucket. `bounds` are in units of `unit_ns` nanoseconds."""

    __slots__ = ("bounds", "bounds_ns", "counts", "unit_ns")

    def __init__(self, bounds: Sequence[float], unit_ns: float = 1e9) -> None:
        self.bounds = bounds
        self.unit_ns = unit_ns
        self.bounds_ns = [round(bound * unit_ns) for bound in bounds]
        self.counts = [0] * (len(bounds) + 1)

    def add(self, nanoseconds: int, times: int = 1) -> None:
        """A duration, so many times."""
        self.counts[bisect_left(self.bounds_ns, nanoseconds)] += times

    def add_all(self, durations: Sequence[int]) -> None:
        """Durations in nanoseconds."""
        bounds, counts = self.bounds_ns, self.counts
        for nanoseconds in durations:
            counts[bisect_left(bounds, nanoseconds)] += 1

    def snapshot(self, sum_ns: int) -> Distribution:
        """The histogram as it stands; the sum of the durations is counted elsewhere already."""
        return Distribution(self.bounds, tuple(self.counts), sum_ns / self.unit_ns)


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """Which distributions are kept: bounds of `PHASES` in seconds, of the first response in ms (None: not kept)."""

    bounds: tuple[Sequence[float], ...] = (BOUNDS,) * len(PHASES)
    first_response: Sequence[float] | None = None
    summaries: bool = False
    clock: Callable[[], float] = monotonic


class Latencies:
    """The distributions of one model version's latencies on one device."""

    __slots__ = ("_clock", "_hot", "first_response", "first_response_ns", "histograms", "summaries")

    def __init__(self, plan: LatencyPlan) -> None:
        self.histograms = tuple(map(LatencyHistogram, plan.bounds))
        self._hot = tuple(part for each in self.histograms for part in (each.bounds_ns, each.counts))
        self.summaries = SlidingQuantiles() if plan.summaries else None
        bounds = plan.first_response
        self.first_response = None if bounds is None else LatencyHistogram(bounds, 1e6)
        self.first_response_ns = 0
        self._clock = plan.clock

    def answered(
        self, totals: Sequence[int], queues: Sequence[int], phases: tuple[int, int, int], streamed: bool = False
    ) -> None:
        """Requests of one execution got their answers: nanoseconds of each altogether and queued, and of the batch.

        Unless they were `streamed`, these are their first responses.
        """
        # spelled out, because five method calls and a loop over the phases take twice as long (bench/counting.py)
        request_bounds, request, queue_bounds, queue, input_bounds, inputs, infer_bounds, infer, out_bounds, outs = (
            self._hot
        )
        for nanoseconds in totals:
            request[bisect_left(request_bounds, nanoseconds)] += 1
        for nanoseconds in queues:
            queue[bisect_left(queue_bounds, nanoseconds)] += 1
        times = len(totals)
        input_ns, infer_ns, output_ns = phases
        inputs[bisect_left(input_bounds, input_ns)] += times
        infer[bisect_left(infer_bounds, infer_ns)] += times
        outs[bisect_left(out_bounds, output_ns)] += times
        if self.summaries is not None:
            self.summaries.add(self._clock(), totals, queues, phases)
        if self.first_response is not None and not streamed:
            self.first_responses(totals)

    def hit(self, total_ns: int) -> None:
        """Count a request that the cache answered after so many nanoseconds, without a queue or an execution."""
        request, queue = self.histograms[:2]
        request.add_all((total_ns,))
        queue.add_all((0,))
        if self.summaries is not None:
            self.summaries.add_each(self._clock(), (total_ns, 0))
        self.first_responses((total_ns,))

    def first_responses(self, waits: Sequence[int]) -> None:
        """Requests got their first responses after so many nanoseconds each."""
        if self.first_response is not None:
            self.first_response.add_all(waits)
            self.first_response_ns += sum(waits)

    def distributions(self) -> list[tuple[Sequence[float], Sequence[int]]]:
        """For each of `PHASES` the bounds in seconds, and the counts as they stand."""
        return [(each.bounds, tuple(each.counts)) for each in self.histograms]

    def quantiles(self, quantiles: Sequence[float]) -> list[list[float]]:
        """For each of `PHASES` the duration in nanoseconds at each of the quantiles."""
        return self.summaries.values(self._clock(), quantiles) if self.summaries is not None else []

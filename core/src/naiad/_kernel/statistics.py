"""Counting what a model version does, in whole batches: a request costs well under 2 µs of it."""

from collections import Counter
from collections.abc import Sequence
from time import time_ns

from naiad.backend import MemoryUsage
from naiad.reports import BatchStatistics, Duration, ModelStatistics


class _Tally:
    """A count and its nanoseconds."""

    __slots__ = ("count", "ns")

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0

    def add(self, count: int, ns: int) -> None:
        self.count += count
        self.ns += ns

    def duration(self) -> Duration:
        return Duration(self.count, self.ns)


class _PhaseTally:
    """The three phases of an execution."""

    __slots__ = ("infer", "input", "output")

    def __init__(self) -> None:
        self.input, self.infer, self.output = _Tally(), _Tally(), _Tally()

    def add(self, count: int, phases: tuple[int, int, int]) -> None:
        self.input.add(count, phases[0] * count)
        self.infer.add(count, phases[1] * count)
        self.output.add(count, phases[2] * count)


class VersionCounters:
    """The counters of one model version. Every method is called on the event loop's thread."""

    def __init__(self) -> None:
        self._success, self._fail, self._queue = _Tally(), _Tally(), _Tally()
        self._cache_hit, self._cache_miss = _Tally(), _Tally()
        self._phases = _PhaseTally()
        self._by_batch_size: dict[int, _PhaseTally] = {}
        self._reasons: Counter[str] = Counter()
        self._inferences = 0
        self._executions = 0
        self._last_ms = 0

    def closed(self, reason: str) -> None:
        """A batch was closed for that reason."""
        self._reasons[reason] += 1

    def executed(self, batch_size: int, phases: tuple[int, int, int]) -> None:
        """An execution over `batch_size` items succeeded; `phases` are its compute input, infer and output in ns."""
        self._executions += 1
        self._last_ms = time_ns() // 1_000_000
        tally = self._by_batch_size.get(batch_size)
        if tally is None:
            tally = self._by_batch_size[batch_size] = _PhaseTally()
        tally.add(1, phases)

    def succeeded(self, requests: int, items: int, total_ns: int, queue_ns: int, phases: tuple[int, int, int]) -> None:
        """So many requests with so many items were answered by one execution; times are sums over the requests."""
        self._inferences += items
        self._success.add(requests, total_ns)
        self._queue.add(requests, queue_ns)
        self._phases.add(requests, phases)

    def failed(self, requests: int, total_ns: int) -> None:
        """So many requests failed, were dropped or were taken back, after `total_ns` altogether."""
        self._fail.add(requests, total_ns)

    def report(self, name: str, version: int, memory: Sequence[MemoryUsage]) -> ModelStatistics:
        """The counters as they stand."""
        return ModelStatistics(
            name=name,
            version=version,
            last_inference=self._last_ms,
            inference_count=self._inferences,
            execution_count=self._executions,
            success=self._success.duration(),
            fail=self._fail.duration(),
            queue=self._queue.duration(),
            compute_input=self._phases.input.duration(),
            compute_infer=self._phases.infer.duration(),
            compute_output=self._phases.output.duration(),
            cache_hit=self._cache_hit.duration(),
            cache_miss=self._cache_miss.duration(),
            batch_stats=tuple(
                BatchStatistics(size, tally.input.duration(), tally.infer.duration(), tally.output.duration())
                for size, tally in sorted(self._by_batch_size.items())
            ),
            memory_usage=tuple(memory),
            batch_reasons={str(reason): count for reason, count in self._reasons.items()},
        )

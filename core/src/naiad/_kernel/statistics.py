"""Counting what a model version does, in whole batches: a request costs well under 2 µs of it."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from time import time_ns

from naiad._kernel.response_counters import ResponseCounters, ResponseKind
from naiad.backend import MemoryUsage
from naiad.reports import BatchStatistics, Duration, ModelStatistics


class FailureReason(StrEnum):
    """Why a request failed, in the words of the metric that counts failures."""

    REJECTED = "REJECTED"
    """It was never executed, because the queue was full or it waited too long."""
    CANCELED = "CANCELED"
    """Its caller took it back."""
    BACKEND = "BACKEND"
    """Its execution failed."""
    OTHER = "OTHER"


class _Phases:
    """The three phases of executions: how many, and the nanoseconds of each phase."""

    __slots__ = ("count", "infer_ns", "input_ns", "output_ns")

    def __init__(self) -> None:
        self.count = self.input_ns = self.infer_ns = self.output_ns = 0

    def add(self, count: int, phases: tuple[int, int, int]) -> None:
        self.count += count
        self.input_ns += phases[0] * count
        self.infer_ns += phases[1] * count
        self.output_ns += phases[2] * count

    def durations(self) -> tuple[Duration, Duration, Duration]:
        count = self.count
        return Duration(count, self.input_ns), Duration(count, self.infer_ns), Duration(count, self.output_ns)


class VersionCounters:
    """The counters of one model version. Every method is called on the event loop's thread.

    Plain integers, because a method call for each of them made half of what counting costs (bench/counting.py).
    """

    def __init__(self) -> None:
        self._successes = self._success_ns = self._queue_ns = 0
        self._failures = dict.fromkeys(FailureReason, 0)
        self._fail_ns = 0
        self._inferences = self._executions = self._last_ms = 0
        self._phases = _Phases()
        self._by_batch_size: dict[int, _Phases] = {}
        self._reasons: Counter[str] = Counter()
        self._responses = ResponseCounters()

    def closed(self, reason: str) -> None:
        """A batch was closed for that reason."""
        self._reasons[reason] += 1

    def executed(self, batch_size: int, phases: tuple[int, int, int]) -> None:
        """An execution over `batch_size` items succeeded; `phases` are its compute input, infer and output in ns."""
        self._executions += 1
        self._last_ms = time_ns() // 1_000_000
        counted = self._by_batch_size.get(batch_size)
        if counted is None:
            counted = self._by_batch_size[batch_size] = _Phases()
        counted.add(1, phases)

    def succeeded(self, requests: int, items: int, total_ns: int, queue_ns: int, phases: tuple[int, int, int]) -> None:
        """So many requests with so many items were answered by one execution; times are sums over the requests."""
        self._inferences += items
        self._successes += requests
        self._success_ns += total_ns
        self._queue_ns += queue_ns
        self._phases.add(requests, phases)

    def failed(self, requests: int, total_ns: int, reason: FailureReason = FailureReason.OTHER) -> None:
        """So many requests failed, were dropped or were taken back for that reason, after `total_ns` altogether."""
        self._failures[reason] += requests
        self._fail_ns += total_ns

    def responded(self, index: int, infer_ns: int, output_ns: int, kind: ResponseKind) -> None:
        """A request got its response number `index` (from 0 up), which took so long to compute and to read."""
        self._responses.add(index, infer_ns, output_ns, kind)

    def report(self, name: str, version: int, memory: Sequence[MemoryUsage]) -> ModelStatistics:
        """The counters as they stand."""
        compute_input, compute_infer, compute_output = self._phases.durations()
        return ModelStatistics(
            name=name,
            version=version,
            last_inference=self._last_ms,
            inference_count=self._inferences,
            execution_count=self._executions,
            success=Duration(self._successes, self._success_ns),
            fail=Duration(sum(self._failures.values()), self._fail_ns),
            queue=Duration(self._successes, self._queue_ns),
            compute_input=compute_input,
            compute_infer=compute_infer,
            compute_output=compute_output,
            cache_hit=Duration(),
            cache_miss=Duration(),
            batch_stats=tuple(
                BatchStatistics(size, *counted.durations()) for size, counted in sorted(self._by_batch_size.items())
            ),
            memory_usage=tuple(memory),
            batch_reasons={str(reason): count for reason, count in self._reasons.items()},
            response_stats=self._responses.report(),
        )

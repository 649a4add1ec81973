"""Counters of one model version, advanced once for each batch: a request costs less than 3 µs."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from enum import IntEnum, StrEnum

from naiad_statistics.caches import CacheCounters
from naiad_statistics.executions import ExecutionCounters, PhaseTotals
from naiad_statistics.observers import VersionObserver
from naiad_statistics.reports import (
    BatchStatistics,
    CacheUse,
    Duration,
    MemoryUsage,
    ModelStatistics,
    ResponseStatistics,
)


class FailureReason(StrEnum):
    """Why a request failed, in the words of the metric that counts failures."""

    REJECTED = "REJECTED"
    """It was never executed, because the queue was full or it waited too long."""
    CANCELED = "CANCELED"
    """Its caller took it back."""
    BACKEND = "BACKEND"
    """Its execution failed."""
    OTHER = "OTHER"


_APART = 1000
"""The responses of a request that are counted each by itself; all later ones are counted together."""


class ResponseKind(IntEnum):
    """What became of one response; a number, because counters in lists cost half of those in dictionaries."""

    SUCCESS = 0
    FAIL = 1
    EMPTY_RESPONSE = 2
    """The one without outputs that only says that the request is over."""
    CANCEL = 3
    """Its request was cancelled."""


class _Responses:
    """What became of the responses with one index, and how long they took in nanoseconds."""

    __slots__ = ("counts", "infer_ns", "nanoseconds", "output_ns")

    def __init__(self) -> None:
        self.counts = [0] * len(ResponseKind)
        self.nanoseconds = [0] * len(ResponseKind)
        self.infer_ns = self.output_ns = 0

    def report(self) -> ResponseStatistics:
        with_outputs = self.counts[ResponseKind.SUCCESS] + self.counts[ResponseKind.FAIL]
        compute = Duration(with_outputs, self.infer_ns), Duration(with_outputs, self.output_ns)
        return ResponseStatistics(*compute, *map(Duration, self.counts, self.nanoseconds))


class VersionCounters:
    """The counters of one model version. Every method is called on the event loop's thread.

    What executions and their requests took is counted by device, as metrics need it, and is also there by slot.
    `devices` has the GPU of each slot, -1 without one. `observer` makes what observes latencies, None without metrics.
    `load_seconds` is how long the version took to load. Stages
    count the requests that they do not pass on, servables without instances of their own all their requests.
    """

    def __init__(self, observer: VersionObserver | None = None, devices: Sequence[int] = (-1,)) -> None:
        self._observer = observer
        self.failures = dict.fromkeys(FailureReason, 0)
        self.cancelled_waiting = self.cancelled_executing = 0
        self._cache: CacheCounters | None = None
        self.load_seconds = 0.0
        self._fail_ns = 0
        self._responses: list[_Responses] = []
        self.execute_on(devices)

    def execute_on(self, devices: Sequence[int]) -> None:
        """These are the devices of the slots. To be called before anything is executed."""
        observer = self._observer
        self.by_device = {
            device: ExecutionCounters(None if observer is None else observer.executions())
            for device in devices or (-1,)
        }
        self.by_slot = [self.by_device[device] for device in devices]

    @property
    def cache(self) -> CacheCounters:
        """What the response cache does for the version; from now on there is something."""
        if self._cache is None:
            self._cache = CacheCounters(self._observer)
        return self._cache

    @property
    def cache_use(self) -> CacheUse | None:
        """What the response cache has done for the version, None where none does anything."""
        return None if self._cache is None else self._cache.report()

    @property
    def reasons(self) -> dict[str, int]:
        """Why batches were closed, as plain text, and how many of them."""
        counts = Counter[str]()
        for each in self.by_device.values():
            counts.update({str(reason): count for reason, count in each.reasons.items()})
        return dict(counts)

    def answered(self, total_ns: int) -> None:
        """A request was answered by a stage after `total_ns`, none of which it waited in a queue."""
        next(iter(self.by_device.values())).hit(total_ns)

    def failed(self, total_ns: int, requests: int = 1, reason: FailureReason = FailureReason.OTHER) -> None:
        """Requests failed, were dropped or were cancelled for that reason, after `total_ns` altogether."""
        self.failures[reason] += requests
        self._fail_ns += total_ns

    def rejected(self, total_ns: int) -> None:
        """A request waited too long, or was refused."""
        self.failed(total_ns, reason=FailureReason.REJECTED)

    def cancelled(self, total_ns: int, executing: bool = False) -> None:
        """The caller of a request left after `total_ns`, while it waited or executed."""
        self.failed(total_ns, reason=FailureReason.CANCELED)
        if executing:
            self.cancelled_executing += 1
        else:
            self.cancelled_waiting += 1

    def responded(self, index: int, infer_ns: int, output_ns: int, kind: ResponseKind) -> None:
        """A request got its response number `index` (from 0 up), which took so long to compute and to read."""
        responses = self._responses
        if index > _APART:
            index = _APART
        while index >= len(responses):
            responses.append(_Responses())
        counted = responses[index]
        counted.counts[kind] += 1
        counted.nanoseconds[kind] += infer_ns + output_ns
        if kind <= ResponseKind.FAIL:
            counted.infer_ns += infer_ns
            counted.output_ns += output_ns

    # Of a servable without instances

    def request_succeeded(
        self, items: int, total_ns: int, queue_ns: int, phases: tuple[int, int, int], streamed: bool
    ) -> None:
        """A request with so many items was answered to the end, by what counts as one execution."""
        counted = self.by_slot[0]
        counted.executed(items, phases)
        counted.succeeded(items, (total_ns,), (queue_ns,), phases, streamed)

    def response_sent(self, index: int, waited_ns: int, empty: bool) -> None:
        """A streamed request got response `index` (from 0 up); an `empty` one only says that it is over."""
        self.responded(index, waited_ns, 0, ResponseKind.EMPTY_RESPONSE if empty else ResponseKind.SUCCESS)
        if not index and not empty:
            self.by_slot[0].first_responses((waited_ns,))

    def report(self, name: str, version: int, memory: Sequence[MemoryUsage]) -> ModelStatistics:
        """The counters as they stand."""
        devices = self.by_device.values()
        phases, by_batch_size = PhaseTotals(), defaultdict[int, PhaseTotals](PhaseTotals)
        for each in devices:
            phases.add(each.phases)
            for size, counted in each.by_batch_size.items():
                by_batch_size[size].add(counted)
        compute_input, compute_infer, compute_output = phases.durations()
        cache = self.cache_use or CacheUse(Duration(), Duration())
        successes = sum(each.successes for each in devices)
        return ModelStatistics(
            name=name,
            version=version,
            last_inference=max(each.last_ns for each in devices) // 1_000_000,
            inference_count=sum(each.inferences for each in devices),
            execution_count=sum(each.executions for each in devices),
            success=Duration(successes, sum(each.success_ns for each in devices)),
            fail=Duration(sum(self.failures.values()), self._fail_ns),
            queue=Duration(successes, sum(each.queue_ns for each in devices)),
            compute_input=compute_input,
            compute_infer=compute_infer,
            compute_output=compute_output,
            cache_hit=cache.hits,
            cache_miss=cache.misses,
            batch_stats=tuple(
                BatchStatistics(size, *counted.durations()) for size, counted in sorted(by_batch_size.items())
            ),
            memory_usage=tuple(memory),
            batch_reasons=self.reasons,
            response_stats={str(index): counted.report() for index, counted in enumerate(self._responses)},
        )

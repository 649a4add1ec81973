"""Reports of counters: what the statistics extension of the protocol and metrics say of a model version."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from naiad_statistics.observers import DurationObserver, ExecutionObserver


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Memory that a model holds: `type` is `CPU`, `CPU_PINNED` or `GPU`, `id` the device, and its bytes."""

    type: str
    id: int
    byte_size: int


@dataclass(frozen=True, slots=True)
class Duration:
    """A count of events and their total nanoseconds."""

    count: int = 0
    ns: int = 0


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """Executions with one batch size."""

    batch_size: int
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


@dataclass(frozen=True, slots=True)
class ResponseStatistics:
    """The streamed responses with one index within their request.

    Each counts as `success`, `fail`, `empty_response` (it only ended the request) or `cancel` (its request was
    cancelled). The compute times are those of successes and failures.
    """

    compute_infer: Duration = Duration()
    compute_output: Duration = Duration()
    success: Duration = Duration()
    fail: Duration = Duration()
    empty_response: Duration = Duration()
    cancel: Duration = Duration()


@dataclass(frozen=True, slots=True)
class ModelStatistics:
    """The counters of one model version since it was loaded, in the terms of the protocol's statistics extension.

    `last_inference` is milliseconds since the epoch. `batch_reasons` counts why batches were closed. `response_stats`
    are those of streamed responses by index: "0", "1" and so on up to "1000", which is for all from there on.
    """

    name: str
    version: int
    last_inference: int
    inference_count: int
    execution_count: int
    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    cache_hit: Duration
    cache_miss: Duration
    batch_stats: tuple[BatchStatistics, ...] = ()
    memory_usage: tuple[MemoryUsage, ...] = ()
    batch_reasons: Mapping[str, int] = field(default_factory=dict)
    response_stats: Mapping[str, ResponseStatistics] = field(default_factory=dict)


@dataclass(slots=True)
class DeviceReport:
    """The executions of a model version on one device; `device` is the number of the GPU, -1 without one.

    `requests` were answered in `success_ns` in all, of which they were queued for `queue_ns`. `compute` is their
    compute input, infer and output, charged to every request of a batch. `batch_sizes` counts executions by batch size.
    """

    device: int
    requests: int
    inferences: int
    executions: int
    success_ns: int
    queue_ns: int
    compute: tuple[Duration, Duration, Duration]
    batch_sizes: Mapping[int, int]
    observer: ExecutionObserver | None = None


@dataclass(slots=True)
class CacheUse:
    """The hits of the response cache for a model version, and its misses with the insertions that followed."""

    hits: Duration
    misses: Duration
    hit_times: DurationObserver | None = None
    miss_times: DurationObserver | None = None

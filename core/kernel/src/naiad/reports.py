"""What the server tells about itself and its models; the frontends only render these."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from naiad.backend import MemoryUsage
from naiad.datatypes import wire_name
from naiad.metrics import DurationObserver, ExecutionObserver
from naiad_config import ModelConfig, ModelInput, ModelOutput


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether something can serve, and why not: one reason a cause.

    A model that is ready may still have reasons: what is wrong with some of its instances.
    """

    ready: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    """Name (`--id`), version and the protocol extensions that are offered."""

    name: str
    version: str
    extensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """An input or output as clients see it: wire datatype and shape, with -1 for variable and batch dimensions."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """A model as clients see it.

    `versions` are the READY ones, or the one asked for; `platform` falls back to the backend's name.
    """

    name: str
    versions: tuple[int, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]

    @classmethod
    def of(cls, config: ModelConfig, version: int) -> "ModelMetadata":
        """A model with that configuration and one version."""

        def rows(tensor: ModelInput | ModelOutput) -> tuple[int, ...]:
            return (-1,) if config.max_batch_size > 0 and not tensor.is_shape_tensor else ()

        return cls(
            name=config.name,
            versions=(version,),
            platform=config.platform or config.backend,
            inputs=tuple(
                TensorMetadata(each.name, wire_name(each.data_type), (*rows(each), *each.dims), each.optional)
                for each in config.input
            ),
            outputs=tuple(
                TensorMetadata(each.name, wire_name(each.data_type), (*rows(each), *each.dims))
                for each in config.output
            ),
        )


@dataclass(frozen=True, slots=True)
class SequenceCounts:
    """The sequences of a model version: `live` ones, which instances know of, and the `backlog`, which waits for slots.

    `backlog` is None where the scheduler does not say.
    """

    live: int
    backlog: int | None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A model version of the repository. A model never loaded has version 0 and an empty state.

    `state` is UNKNOWN, READY, UNAVAILABLE, LOADING or UNLOADING; `reason` says why it is in it, where that says more.
    """

    name: str
    version: int = 0
    state: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """One instance: its state (READY, STARTING, DEAD), why, and the seconds it has been executing for (0: idle).

    Instances of one group on several GPUs have the same name; `gpu` is the number of theirs, -1 without one.
    """

    name: str
    state: str
    reason: str = ""
    busy_seconds: float = 0.0
    gpu: int = -1


@dataclass(frozen=True, slots=True)
class Duration:
    """How often something was counted and how long it took altogether, in nanoseconds."""

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
    """The responses of one place among those that requests got one by one.

    Each ended in one of `success`, `fail`, `empty_response` (it only said that the request is over) and `cancel`
    (nobody waited for it any more). The compute times are those of successes and failures.
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
    has an entry for each place among the responses that requests got one by one: "0", "1" and so on up to "1000",
    which stands for all from there on.
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
    """What a model version has executed on one device; `device` is the number of the GPU, -1 without one.

    `requests` were answered, after `success_ns` altogether, of which they were queued for `queue_ns`. `compute` is
    their compute input, infer and output, charged to every request of a batch. `batch_sizes` counts executions by
    batch size.
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
    """What the response cache did for a model version: hits, and misses with the insertions that followed."""

    hits: Duration
    misses: Duration
    hit_times: DurationObserver | None = None
    miss_times: DurationObserver | None = None


@dataclass(slots=True)
class VersionReport:
    """One version that serves, as metrics need it: what waits and executes now, and counters since it was loaded.

    `failures` counts failed requests by reason, `batch_reasons` why batches were closed. `cache` is None where no cache
    answers for the version, `sequences` where its requests are not in sequences. Not frozen, as thousands are made.
    """

    name: str
    version: int
    config: ModelConfig
    load_seconds: float
    waiting: int
    outstanding: int
    failures: Mapping[str, int]
    cancelled_waiting: int
    cancelled_executing: int
    batch_reasons: Mapping[str, int]
    instances: tuple[InstanceReport, ...]
    devices: tuple[DeviceReport, ...]
    cache: CacheUse | None = None
    sequences: SequenceCounts | None = None

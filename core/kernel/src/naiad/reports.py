"""Reports of a server about itself and its models: metadata, readiness, the index, and versions for metrics."""

from collections.abc import Mapping
from dataclasses import dataclass

from naiad_config import ModelConfig, ModelInput, ModelOutput
from naiad_statistics.reports import CacheUse, DeviceReport
from naiad_tensors.datatypes import wire_name


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a server or model can serve or is `starting`, and why not; a ready model may have failed instances."""

    ready: bool
    reasons: tuple[str, ...] = ()
    starting: bool = False


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    """Name (`--id`), version and protocol extensions."""

    name: str
    version: str
    extensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """An input or output for clients: wire datatype and shape, with -1 for variable and batch dimensions."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """A model for clients: `versions` are the READY ones or the requested one, `platform` may be the backend."""

    name: str
    versions: tuple[int, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]

    @classmethod
    def of(cls, config: ModelConfig, versions: tuple[int, ...]) -> "ModelMetadata":
        """These versions of a model with that configuration."""

        def described(tensor: ModelInput | ModelOutput, optional: bool = False) -> TensorMetadata:
            batched = config.max_batch_size > 0 and not tensor.is_shape_tensor
            shape = (-1, *tensor.dims) if batched else tuple(tensor.dims)
            return TensorMetadata(tensor.name, wire_name(tensor.data_type), shape, optional)

        inputs = tuple(described(each, each.optional) for each in config.input)
        platform = config.platform or config.backend
        return cls(config.name, versions, platform, inputs, tuple(map(described, config.output)))


@dataclass(frozen=True, slots=True)
class SequenceCounts:
    """The sequences of a model version: those in instances, and those that wait for a slot (None if unknown)."""

    live: int
    backlog: int | None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A model version of the repository. A model never loaded has version 0 and an empty state.

    `state` is UNKNOWN, READY, UNAVAILABLE, LOADING or UNLOADING, for that `reason`.
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


@dataclass(slots=True)
class VersionReport:
    """One version that serves, for metrics: its requests now, and its counters since it was loaded.

    `failures` counts failed requests by reason, `batch_reasons` why batches were closed. `cache` is None without
    a response cache, `sequences` without sequences. Not frozen, as thousands are made.
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

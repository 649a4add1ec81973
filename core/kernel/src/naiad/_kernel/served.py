"""What serves one version of a model, be it a model of its own or an ensemble of others."""

from collections.abc import Mapping
from typing import Protocol

from naiad._kernel.call import Call, Deliver
from naiad._kernel.stages import VersionStages
from naiad._kernel.statistics import VersionCounters
from naiad.datatypes import wire_name
from naiad.devices import Device
from naiad.reports import InstanceReport, ModelMetadata, ModelStatistics, Readiness, TensorMetadata
from naiad.types import Request
from naiad_config import ModelConfig, ModelInput, ModelOutput


class ServedVersion(Protocol):
    """One version from its load to its last answer. Lives on the event loop's thread.

    `load_seconds` is how long it took to load, `counters` what it has done since, `labels` are the lines of its
    outputs' label files. `stages` are what plugins put around it.
    """

    name: str
    version: int
    config: ModelConfig
    labels: Mapping[str, tuple[str, ...]]
    counters: VersionCounters
    load_seconds: float
    stages: VersionStages

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> Call:
        """Check a request and take it in; nothing is delivered before this returns. Raises what is refused at once."""
        ...

    async def drain(self) -> None:
        """Return when every request taken in has been answered."""
        ...

    async def close(self, grace: float | None = None) -> bool:
        """Fail what is still open and free everything; whether that ended within `grace` seconds."""
        ...

    def readiness(self) -> Readiness:
        """Whether it can serve, and what is wrong."""
        ...

    def instances(self) -> tuple[InstanceReport, ...]:
        """Its instances as they stand."""
        ...

    def input_devices(self, name: str) -> frozenset[Device]:
        """The devices whose tensors it takes as that input without the host."""
        ...

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        ...

    @property
    def outstanding(self) -> int:
        """How many requests are not over."""
        ...

    def statistics(self) -> ModelStatistics:
        """The counters as they stand."""
        ...

    @property
    def metadata(self) -> ModelMetadata:
        """The model as clients see it, with this version alone."""
        ...


def metadata_of(config: ModelConfig, version: int) -> ModelMetadata:
    """A model as clients see it, with one version."""

    def rows(tensor: ModelInput | ModelOutput) -> tuple[int, ...]:
        return (-1,) if config.max_batch_size > 0 and not tensor.is_shape_tensor else ()

    return ModelMetadata(
        name=config.name,
        versions=(version,),
        platform=config.platform or config.backend,
        inputs=tuple(
            TensorMetadata(each.name, wire_name(each.data_type), (*rows(each), *each.dims), each.optional)
            for each in config.input
        ),
        outputs=tuple(
            TensorMetadata(each.name, wire_name(each.data_type), (*rows(each), *each.dims)) for each in config.output
        ),
    )

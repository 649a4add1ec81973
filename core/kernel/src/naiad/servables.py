"""The contract of servables, such as ensembles: they serve a configuration by versions of other models.

A plugin offers a `ServableFactory` by the hook `naiad_servables`. A prepared configuration is bound to the versions of
other models, which leases keep in service, and bound anew whenever one of these changes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from naiad.backend import ModelContext
from naiad.extend import HoldsRequests, Submit
from naiad.in_flight import InflightRequest as InflightRequest
from naiad.in_flight import Occupancy
from naiad.reports import InstanceReport, Readiness
from naiad.server import Deliver
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_statistics.reports import ModelStatistics
from naiad_statistics.versions import VersionCounters
from naiad_tensors.devices import Device


class ServableStages(HoldsRequests, Protocol):
    """The request stages around a servable, as its context makes them."""

    @property
    def parameters(self) -> frozenset[str]:
        """The request parameters of clients that lead to `submit`; all other requests go to the servable."""

    @property
    def submit(self) -> Submit:
        """Submits a request through the stages with a parameter."""

    @property
    def checked(self) -> Callable[[Request, Deliver, bool], InflightRequest] | None:
        """Submits a checked request through the other stages to `proceed`; None without such stages."""

    @property
    def host_only(self) -> bool:
        """Whether a stage after the check needs tensors in host memory."""


class Servable(Protocol):
    """Serves one version of a model. Every method is for the event loop's thread.

    `labels` are the lines of the label files of outputs. It may also have `sticky`, the `naiad.codec.StickyRoutes` that
    keep requests at it while it drains, and `sequences()`, the `naiad.reports.SequenceCounts` of its requests.
    """

    name: str
    version: int
    config: ModelConfig
    labels: Mapping[str, tuple[str, ...]]

    @property
    def counters(self) -> VersionCounters:
        """Its counters since it was loaded."""

    @property
    def stages(self) -> ServableStages:
        """Its request stages, from `ServableContext.stages`."""

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> InflightRequest:
        """Check and submit a request; nothing is delivered before this returns. Raises NaiadError.

        Without `streams` the caller takes exactly one response.
        """

    def occupancy(self) -> Sequence[Occupancy]:
        """Its limited resources that requests occupy at this moment; those of other servables are theirs."""

    async def drain(self) -> None:
        """Return when every request is answered."""

    async def close(self, grace: float | None = None) -> bool:
        """Fail open requests and free everything; False if that took more than `grace` seconds."""

    def readiness(self) -> Readiness:
        """Whether it can serve, and what is wrong."""

    def instances(self) -> tuple[InstanceReport, ...]:
        """Its instances now."""

    def input_devices(self, name: str) -> frozenset[Device]:
        """The devices whose tensors it takes as that input without the host."""

    @property
    def waiting(self) -> int:
        """How many requests wait."""

    @property
    def outstanding(self) -> int:
        """How many requests are not over."""

    def statistics(self) -> ModelStatistics:
        """The counters now."""


class Lease(Protocol):
    """Keeps a version in service for a servable that uses it: it is drained and closed after its last lease."""

    @property
    def servable(self) -> Servable:
        """The version."""

    def release(self) -> None:
        """Release the version. Harmless when repeated."""


class ModelResolver(Protocol):
    """Finds the versions that a servable uses, by the names of their models. For the event loop's thread."""

    def circle(self) -> tuple[str, ...]:
        """The models of a circle of dependencies through the servable's model, (a, b, a); () without one."""

    def is_known(self, name: str) -> bool:
        """Whether that model can be used: exactly one repository has it, or it serves while several have it."""

    def why_not(self, name: str) -> str:
        """A sentence, with a space before it, on why that model does not serve; "" if unknown."""

    def serves(self, name: str, version: int = 0) -> bool:
        """Whether that version of a model is READY; any for version 0."""

    def lease(self, name: str, version: int = 0) -> Lease:
        """The READY version of a model, the largest for version 0. Raises NotFoundError or ModelNotReadyError."""

    def continuing(self, request: Request) -> Servable | None:
        """The draining version with the open sequence of that request, else None; valid as long as the servable is."""


class ConfiguredModels(Protocol):
    """The models of repositories, not loaded, for `naiad check`."""

    def circle(self) -> tuple[str, ...]:
        """As `ModelResolver.circle`."""

    def is_broken(self, name: str) -> bool:
        """Whether that model has problems of its own."""

    def versions(self, name: str) -> Collection[int]:
        """The versions of that model that would be served; none for an unknown model."""

    def config(self, name: str) -> ModelConfig:
        """The configuration of a model that has versions and no problems."""


class PreparedServable(Protocol):
    """A checked configuration, to be bound to the models that it depends on."""

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The names of the models that it uses, each once."""

    def bind(self, models: ModelResolver, earlier: Mapping[int, Servable]) -> Mapping[int, Servable]:
        """A new servable for each version, over the models that serve now; they replace those of `earlier`.

        Called on the event loop whenever one of the models changes, in the order of dependencies; must return at once.
        The leases of those of `earlier` are released. Raises ConfigError for models that are missing or do not fit
        together.
        """

    def check(self, models: ConfiguredModels) -> ModelConfig:
        """The configuration as it would be served over these models. Raises ConfigError for those that do not fit."""


@dataclass(frozen=True, slots=True, eq=False)
class ServableContext:
    """The configuration and the kernel's parts for servables.

    `versions` are the contexts of the versions to serve, with one configuration, and `labels` the lines of its label
    files. `counters` makes counters, and `validator` a function that checks a request and returns its batch size (1
    without batching) or raises InvalidArgumentError. `stages` makes the request stages of a version with these
    counters: around its `submit`, and between the check and `proceed`, which takes a checked request.
    """

    versions: tuple[ModelContext, ...]
    labels: Mapping[str, tuple[str, ...]]
    counters: Callable[[], VersionCounters]
    validator: Callable[[ModelConfig], Callable[[Request], int]]
    stages: Callable[[ModelContext, VersionCounters, Submit, Submit], ServableStages]

    @property
    def config(self) -> ModelConfig:
        """The configuration, the same for every version."""
        return self.versions[-1].config


@runtime_checkable
class ServableFactory(Protocol):
    """Makes servables of one kind, whose `name` is a word for messages (`ensemble`)."""

    name: str

    def claims(self, config: ModelConfig) -> bool:
        """Whether it serves that configuration, as the user wrote it."""

    def complete(self, config: ModelConfig) -> ModelConfig:
        """The configuration with its defaults."""

    def prepare(self, context: ServableContext) -> PreparedServable:
        """The configuration, completed, normalised and checked, ready to be bound. Called on a loader thread."""

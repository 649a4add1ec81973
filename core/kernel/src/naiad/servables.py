"""The contract of servables: what serves a configuration in another way than by the instances of a backend's model.

A plugin offers a `ServableFactory` by the hook `naiad_servables`. What it prepares of a configuration is bound to the
versions of other models, which it keeps in service by leases, and bound anew whenever one of these changes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from naiad.backend import MemoryUsage, ModelContext
from naiad.devices import Device
from naiad.errors import NaiadError
from naiad.extend import Submit
from naiad.reports import InstanceReport, ModelMetadata, ModelStatistics, Readiness
from naiad.server import Deliver, SubmittedRequest
from naiad.types import Request
from naiad_config import ModelConfig


class Capacity(ABC):
    """A limit on how many requests may be under way somewhere at once; equal ones are the same limit."""

    @property
    @abstractmethod
    def advice(self) -> str:
        """What to change so that nobody waits for itself here, as the middle of a sentence."""

    @abstractmethod
    def under_way(self) -> "Mapping[Hashable, Sequence[WaitTarget]]":
        """The requests that use the capacity, each with all that it waits for."""

    @abstractmethod
    def __str__(self) -> str:
        """Where it is, as in `step 0 of ensemble 'e'`."""


class CapacityWait:
    """One wait for a capacity, until it is `over`; `lift` lets those go on that are paused for it."""

    __slots__ = ("capacity", "lift", "over")

    def __init__(self, capacity: Capacity, lift: Callable[[], None]) -> None:
        self.capacity = capacity
        self.lift = lift
        self.over = False


WaitTarget: TypeAlias = CapacityWait | tuple[Any, Any]
"""What a request waits for in the end: a capacity, or a version with instances and the request that it was given."""


class InflightRequest(SubmittedRequest, Protocol):
    """A request that a servable has taken in.

    `over` says that no outcome is awaited any more. `queue_ns` and `phases` are how long an answered one waited, and
    took for compute input, infer and output, in nanoseconds.
    """

    over: bool
    queue_ns: int
    phases: tuple[int, int, int]

    def pause(self, behind: Sequence[CapacityWait] = ()) -> None:
        """The caller reads slowly, for want of the capacities that are waited for in `behind` where there are any.

        A model that streams waits; what is on its way is still delivered.
        """
        ...


class CapacityWaits(Protocol):
    """Looks after requests that wait for a capacity, so that no model waits for its own call for ever."""

    def waiting(self, wait: CapacityWait, request: Request, refuse: Callable[[NaiadError], None]) -> None:
        """That request waits for a capacity; `refuse` is called, perhaps at once, if it would wait for ever."""
        ...

    def paused_for(self, capacity: Capacity) -> None:
        """Something has just been paused until there is capacity; `CapacityWait.lift` ends that where it must."""
        ...


class ServableStages(Protocol):
    """The request stages around a servable, as its context makes them."""

    @property
    def parameters(self) -> frozenset[str]:
        """Requests of clients with one of these parameters are given to `submit`, all others to the servable."""
        ...

    @property
    def submit(self) -> Submit:
        """Takes a request in, and passes it on to the servable."""
        ...

    @property
    def checked(self) -> Callable[[Request, Deliver, bool], InflightRequest] | None:
        """Takes a request that the servable has checked, and passes it on to `proceed`; None without such stages."""
        ...

    @property
    def host_only(self) -> bool:
        """Whether a stage behind the check reads tensors, which have to be in host memory then."""
        ...

    @property
    def outstanding(self) -> int:
        """How many requests the stages hold, so that the servable does not know of them."""
        ...

    async def drained(self) -> None:
        """Return when no stage holds a request."""
        ...

    def fail_all(self, error: NaiadError) -> None:
        """Fail every request that a stage holds."""
        ...


class RequestCounters(Protocol):
    """Counts the requests of a servable that has no instances of its own. Every method is for the event loop's thread.

    Times are in nanoseconds; `phases` are those of compute input, infer and output.
    """

    def request_succeeded(
        self, items: int, total_ns: int, queue_ns: int, phases: tuple[int, int, int], streamed: bool
    ) -> None:
        """A request with so many items was answered to the end; of one that is `streamed` each response is counted."""
        ...

    def response_sent(self, index: int, waited_ns: int, empty: bool) -> None:
        """A streamed request got response `index` (from 0 up); an `empty` one only says that it is over."""
        ...

    def request_failed(self, total_ns: int) -> None:
        """A request failed."""
        ...

    def cancelled(self, total_ns: int, executing: bool) -> None:
        """The caller of a request left, while it waited or executed."""
        ...

    def report(self, name: str, version: int, memory: Sequence[MemoryUsage]) -> ModelStatistics:
        """The counters as they stand."""
        ...


class Servable(Protocol):
    """What serves one version of a model, from its load to its last answer. Lives on the event loop's thread.

    `counters` have what it has done, `labels` the lines of its outputs' label files, by the output; `stages` are what
    plugins put around it. It may also have `sticky`, the `naiad.codec.StickyRoutes` that keep requests at it when it is
    drained, and `sequences()`, the `naiad.reports.SequenceCounts` of its requests.
    """

    name: str
    version: int
    config: ModelConfig
    labels: Mapping[str, tuple[str, ...]]

    @property
    def counters(self) -> RequestCounters:
        """What it has done since it was loaded."""
        ...

    @property
    def stages(self) -> ServableStages:
        """The request stages, which its context made around `submit`."""
        ...

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> InflightRequest:
        """Check a request and take it in; nothing is delivered before this returns. Raises what is refused at once.

        Without `streams` the caller takes exactly one response.
        """
        ...

    def waits_of(self, request: InflightRequest) -> Sequence[WaitTarget]:
        """What a request that it has taken in waits for; nothing where that cannot be told."""
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


class Lease(Protocol):
    """Keeps a version in service for a servable that uses it: it is drained and closed after its last lease."""

    @property
    def servable(self) -> Servable:
        """The version."""
        ...

    def release(self) -> None:
        """The version is used no more; harmless when repeated."""
        ...


class ModelResolver(Protocol):
    """Finds the versions that a servable uses, by the names of their models. For the event loop's thread."""

    def circle(self) -> tuple[str, ...]:
        """The way from the servable's model through those that it depends on back to itself, (a, b, a); () for none."""
        ...

    def is_known(self, name: str) -> bool:
        """Whether exactly one repository has that model."""
        ...

    def why_not(self, name: str) -> str:
        """Why that model does not serve, as a sentence of its own with a space before it; "" where nobody knows."""
        ...

    def serves(self, name: str, version: int = 0) -> bool:
        """Whether that version of a model is READY; any for version 0."""
        ...

    def lease(self, name: str, version: int = 0) -> Lease:
        """The READY version of a model, the largest for version 0. Raises NotFoundError or ModelNotReadyError."""
        ...

    def continuing(self, request: Request) -> Servable | None:
        """The version that goes out of service, and has the sequence of that request under way; None for any other.

        Unlike the other methods this may be called for as long as the servable serves.
        """
        ...


class ConfiguredModels(Protocol):
    """The models of repositories none of which is loaded, as `naiad check` knows them."""

    def circle(self) -> tuple[str, ...]:
        """As `ModelResolver.circle`."""
        ...

    def is_broken(self, name: str) -> bool:
        """Whether that model has problems of its own."""
        ...

    def versions(self, name: str) -> Collection[int]:
        """The versions that would be served of that model; none where there is no such model."""
        ...

    def config(self, name: str) -> ModelConfig:
        """The configuration of a model that has versions and no problems."""
        ...


class PreparedServable(Protocol):
    """A configuration that was read and checked, and waits for the models that it depends on."""

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The names of the models that it uses, each once."""
        ...

    def bind(self, models: ModelResolver, earlier: Mapping[int, Servable]) -> Mapping[int, Servable]:
        """A servable for each version, over what serves now; `earlier` are those that these replace.

        Called on the event loop whenever one of the models came, changed or went, in the order in which they depend on
        each other; must return at once. Raises ConfigError for models that do not fit together or are not there. The
        leases of servables that it does not return are released.
        """
        ...

    def check(self, models: ConfiguredModels) -> ModelConfig:
        """The configuration as it would be served over these models. Raises ConfigError for those that do not fit."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ServableContext:
    """What a factory makes servables of.

    `versions` has the context of each version to serve, with the same configuration, and `labels` the lines of its
    label files. `counters` makes counters, and `validator` a check of requests to models with that configuration, which
    answers with the batch size (1 without batching) and raises InvalidArgumentError. `stages` makes the request stages
    of a version with these counters: around its `submit`, and between the check of a request and `proceed`, which takes
    a checked one; what they keep counts for one binding. `waits` has to know the requests that wait for a capacity.
    """

    versions: tuple[ModelContext, ...]
    labels: Mapping[str, tuple[str, ...]]
    counters: Callable[[], RequestCounters]
    validator: Callable[[ModelConfig], Callable[[Request], int]]
    stages: Callable[[ModelContext, RequestCounters, Submit, Submit], ServableStages]
    waits: CapacityWaits

    @property
    def config(self) -> ModelConfig:
        """The configuration, the same for every version."""
        return self.versions[-1].config


@runtime_checkable
class ServableFactory(Protocol):
    """Serves configurations in another way than by instances of a backend's model.

    `name` says which kind of servable it makes, in a word that messages use (`ensemble`).
    """

    name: str

    def claims(self, config: ModelConfig) -> bool:
        """Whether it serves that configuration, which is as its author wrote it."""
        ...

    def complete(self, config: ModelConfig) -> ModelConfig:
        """The configuration with what the author may leave out."""
        ...

    def prepare(self, context: ServableContext) -> PreparedServable:
        """The configuration, completed, normalised and checked, ready to be bound. Called on a loader thread."""
        ...

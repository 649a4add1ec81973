"""The server as frontends and services see it: what they may ask of it and do with it."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from naiad.byte_budget import ByteBudget
from naiad.cache import CacheFactory
from naiad.errors import NaiadError
from naiad.log_settings import LogControl
from naiad.metrics import MetricFamily
from naiad.options import Settings
from naiad.reports import (
    IndexEntry,
    InstanceReport,
    ModelMetadata,
    ModelStatistics,
    Readiness,
    ServerMetadata,
    VersionReport,
)
from naiad.types import Request, Response
from naiad_config import ModelConfig

Outcome = Response | NaiadError
"""What a request is answered with: a response, or the error that ends it."""

Deliver = Callable[[Outcome], None]
"""Gets the responses to a request, or its error, on the event loop's thread; the last one ends the request."""


class SubmittedRequest(Protocol):
    """A request that the server has taken, as its caller sees it. Every method is for the event loop's thread."""

    def cancel(self) -> None:
        """Say that the caller went away: nothing more is delivered. Harmless after the last delivery."""
        ...

    def pause(self) -> None:
        """Say that the caller reads slowly: a model that streams waits. What is on its way is still delivered."""
        ...

    def resume(self) -> None:
        """Say that the caller has room again."""
        ...


class Named(Protocol):
    """What every service has: the name by which the server finds it."""

    name: str


ServiceT = TypeVar("ServiceT", bound=Named)
"""The kind of service that is asked for."""


class ServerApi(Protocol):
    """A server. Every method is for the thread of the event loop that the server runs on.

    The methods about models raise NotFoundError for an unknown model or version, and ModelNotReadyError for one that
    does not serve; a `version` of 0 is the one that requests without a version get.
    """

    @property
    def settings(self) -> Settings:
        """The value of every option by its name, without the dashes."""
        ...

    @property
    def bytes_in_flight(self) -> ByteBudget:
        """The budget that frontends reserve the memory of large payloads from."""
        ...

    @property
    def logging(self) -> LogControl:
        """The settings of the log that can be changed while the server runs."""
        ...

    def service(self, kind: type[ServiceT]) -> ServiceT:
        """The service of that kind, one for the whole server.

        Raises UnsupportedError, with what to install, where no plugin brings it.
        """
        ...

    def cache_factory(self, name: str) -> CacheFactory:
        """The kind of cache of that name. Raises NotFoundError with what is installed and what to install."""
        ...

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> SubmittedRequest:
        """Submit a request; `deliver` gets its response or error on the event loop's thread.

        Without `streams` it gets exactly one. With it, a decoupled model's responses come one by one: all but the last
        have `final` unset, and the last may be empty or an error. Raises NaiadError for what can be refused at once:
        unknown model, wrong input, full queue.
        """
        ...

    async def infer(self, request: Request) -> Response:
        """The response to a request. Raises its error; cancelling the task takes the request back."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Response, None]:
        """The responses to a request, one by one, no faster than they are taken. Raises its error.

        Closing the generator takes the request back.
        """
        ...

    def live(self) -> bool:
        """Whether the server runs at all: from the moment it listens until it has stopped."""
        ...

    @property
    def draining(self) -> bool:
        """Whether the server is about to stop, so that clients should connect elsewhere; it may still answer them."""
        ...

    def ready(self) -> Readiness:
        """Whether the server can serve its models, and why not."""
        ...

    def model_ready(self, name: str, version: int = 0) -> Readiness:
        """Whether a version has an instance that can serve."""
        ...

    def metadata(self) -> ServerMetadata:
        """The server's name, version and protocol extensions."""
        ...

    def model_metadata(self, name: str, version: int = 0) -> ModelMetadata:
        """A model's inputs and outputs."""
        ...

    def model_config(self, name: str, version: int = 0) -> ModelConfig:
        """A model's completed and normalised configuration."""
        ...

    def labels(self, name: str, output: str, version: int = 0) -> tuple[str, ...]:
        """The lines of an output's label file; none without one."""
        ...

    def statistics(self, name: str = "", version: int = 0) -> Sequence[ModelStatistics]:
        """The counters of all models, of one, or of one version."""
        ...

    def version_reports(self) -> Iterator[VersionReport]:
        """Every version that serves, by name; each is reported as it stands when the iterator reaches it."""
        ...

    def metric_families(self) -> Sequence[MetricFamily]:
        """The metrics of execution gates, caches and services as they stand, also of families without samples."""
        ...

    def instances(self, name: str, version: int = 0) -> Sequence[InstanceReport]:
        """The instances of a version."""
        ...

    def index(self, ready: bool = False) -> Sequence[IndexEntry]:
        """Every model of the repositories with its versions, their states and the reasons; reads no disk."""
        ...

    async def fresh_index(self, ready: bool = False) -> Sequence[IndexEntry]:
        """As `index`, once the repositories have been read again, on a thread."""
        ...

    async def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model, with a JSON configuration and files (`1/model.onnx`) in place of its folder's.

        Returns when it is READY. Raises UnavailableError unless the control mode is explicit, NotFoundError without
        such a model, InvalidArgumentError when it fails; an earlier generation then goes on serving.
        """
        ...

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Take a model out of service; returns when it takes no more requests.

        `unload_dependents` concerns the models that an ensemble is composed of, and no others. Raises
        UnavailableError unless the control mode is explicit.
        """
        ...

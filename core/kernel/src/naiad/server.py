"""The API of a server for frontends, services and programs: requests, metadata, reports, loads and unloads."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from naiad.cache import CacheFactory
from naiad.errors import NaiadError
from naiad.in_flight import Occupancy
from naiad.in_flight import SubmittedRequest as SubmittedRequest
from naiad.options import Settings
from naiad.reports import IndexEntry, InstanceReport, ModelMetadata, Readiness, ServerMetadata, VersionReport
from naiad.types import Request, Response
from naiad_config import Files, ModelConfig
from naiad_statistics.reports import ModelStatistics

Outcome = Response | NaiadError
"""A response to a request, or the error that ends it."""

Deliver = Callable[[Outcome], None]
"""Gets the responses to a request, or its error, on the event loop's thread; the last one ends the request."""


class Named(Protocol):
    """The name of a service, by which a server finds it."""

    name: str


ServiceT = TypeVar("ServiceT", bound=Named)
"""The type of a service."""


class ServerApi(Protocol):
    """A server. Every method is for the thread of the event loop that the server runs on.

    The methods about models raise NotFoundError for an unknown model or version, and ModelNotReadyError for one that
    does not serve; a `version` of 0 is the one that requests without a version get.
    """

    @property
    def settings(self) -> Settings:
        """The value of every option by its name, without the dashes."""

    def service(self, kind: type[ServiceT]) -> ServiceT:
        """The service of that kind, from a plugin or the program that made the server.

        Else a `kind` with a class method `of_settings(settings)` makes it at the first use. Raises UnsupportedError,
        with what to install, for any other.
        """

    def cache_factory(self, name: str) -> CacheFactory:
        """The kind of cache of that name. Raises NotFoundError with what is installed and what to install."""

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> SubmittedRequest:
        """Submit a request; `deliver` gets its response or error on the event loop's thread.

        Without `streams` it gets exactly one. With it, a decoupled model's responses come one by one: all but the last
        have `final` unset, and the last may be empty or an error. Raises NaiadError for what can be refused at once:
        unknown model, wrong input, full queue.
        """

    async def infer(self, request: Request) -> Response:
        """The response to a request. Raises its error; cancelling the task cancels the request."""

    def stream(self, request: Request) -> AsyncGenerator[Response, None]:
        """The responses to a request, no faster than they are taken; closing cancels it. Raises its error."""

    def live(self) -> bool:
        """Whether the server runs: from its first listening until it has stopped."""

    @property
    def draining(self) -> bool:
        """Whether the server is about to stop; clients should connect elsewhere, though it may still answer."""

    def ready(self) -> Readiness:
        """Whether the server can serve its models, and why not."""

    def model_ready(self, name: str, version: int = 0) -> Readiness:
        """Whether a version has an instance that can serve."""

    def metadata(self) -> ServerMetadata:
        """The server's name, version and protocol extensions."""

    def model_metadata(self, name: str, version: int = 0) -> ModelMetadata:
        """A model's inputs and outputs."""

    def model_config(self, name: str, version: int = 0) -> ModelConfig:
        """A model's completed and normalised configuration."""

    def labels(self, name: str, output: str, version: int = 0) -> tuple[str, ...]:
        """The lines of an output's label file; none without one."""

    def statistics(self, name: str = "", version: int = 0) -> Sequence[ModelStatistics]:
        """The counters of all models, of one, or of one version."""

    def version_reports(self) -> Iterator[VersionReport]:
        """Every version that serves, by name, each with its values at the step of the iterator."""

    def contributors(self) -> Iterator[object]:
        """The factory of execution gates and every service of plugins, for what they offer besides."""

    def instances(self, name: str, version: int = 0) -> Sequence[InstanceReport]:
        """The instances of a version."""

    def index(self, ready: bool = False) -> Sequence[IndexEntry]:
        """Every model of the repositories with its versions, their states and the reasons; reads no disk."""

    async def fresh_index(self, ready: bool = False) -> Sequence[IndexEntry]:
        """As `index`, once the repositories have been read again, on a thread."""

    def occupancy(self) -> Iterator[Occupancy]:
        """The instances of each version that executes something, and what servables limit besides."""

    async def load(
        self, name: str, config: str = "", files: Files | None = None, *, within: str = "", trusted: bool = True
    ) -> None:
        """Load or reload a model, with a JSON configuration and files (`1/model.onnx`) in place of its folder's.

        Returns when it is READY. `within` is the model that is being loaded and waits for this one, "" for none. Files
        that are not `trusted`, because a client sent them, may be code only with `--allow-uploaded-code`. Raises
        UnavailableError unless the control mode is explicit, NotFoundError without such a model, InvalidArgumentError
        when it fails, or would wait for the load that it is within; an earlier generation then goes on serving.
        """

    async def unload(self, name: str, unload_dependents: bool = False, *, within: str = "") -> None:
        """Take a model out of service; returns when it takes no more requests.

        `unload_dependents` concerns the models that an ensemble is composed of, and no others; `within` is as for
        `load`. Raises UnavailableError unless the control mode is explicit.
        """

    def release_loop(self) -> None:
        """The code on the calling thread is about to wait for the event loop: let another thread run the loop.

        For any thread.
        """

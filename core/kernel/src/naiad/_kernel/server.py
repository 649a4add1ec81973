"""The server: plugins, models and frontends put together, and everything that a frontend may ask of it."""

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

from naiad._kernel.calls.model_calls import Calls
from naiad._kernel.extensions import extensions
from naiad._kernel.frontends import Frontends
from naiad._kernel.loading import Loader
from naiad._kernel.models import Models
from naiad._kernel.plugins import PluginRegistry
from naiad._kernel.reading import responses
from naiad._kernel.services import Services
from naiad._kernel.starting import follow_disk, load_start_up_models, with_own
from naiad._kernel.stop_steps import StopSteps
from naiad._kernel.version_reports import report_of
from naiad._version import __version__
from naiad.byte_budget import ByteBudget, default_limit
from naiad.cache import CacheFactory
from naiad.errors import (
    NaiadError,
    ShuttingDownError,
    UnavailableError,
)
from naiad.extend import LoopRunner, MetricSource
from naiad.foreign_errors import raise_interrupt
from naiad.log_settings import LogControl, embedded_log_control
from naiad.metrics import MetricFamily, Metrics
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
from naiad.server import Deliver, Outcome, ServiceT, SubmittedRequest
from naiad.types import Request, Response
from naiad_config import ModelConfig

_logger = logging.getLogger("naiad")

_SECONDS_TO_WRITE = 1.0
"""So long services may write and close what they hold, after everything else took all of `exit-timeout-secs`."""

_SPARE_SECONDS = 0.5
"""How much longer than it was asked to a step of the stop may take before it is given up."""


class Server:
    """An inference server, with or without frontends. Use it as `async with Server(model_repository=[...]) as server`.

    `plugins` None takes the installed ones; a list takes exactly these, and the kernel's own. `options` are the
    options of `naiad serve` by name, already as values. Everything after `start` happens on the event loop that
    started it, except where a docstring says otherwise. `logging` are the log settings that can be changed while it
    runs.
    `bytes_in_flight` is the budget that frontends reserve the memory of large payloads from.
    `runner` runs the event loop, where its threads may change; `log` changes the log that the process writes, and is
    None where the log belongs to the program.
    """

    def __init__(
        self,
        *,
        model_repository: Sequence[str | Path] = (),
        plugins: Sequence[object] | None = None,
        options: Mapping[str, Any] | None = None,
        runner: LoopRunner | None = None,
        log: LogControl | None = None,
    ) -> None:
        self.plugins = PluginRegistry.discover() if plugins is None else PluginRegistry.of(with_own(plugins))
        given = dict(options or {})
        if model_repository:
            given["model-repository"] = tuple(str(root) for root in model_repository)
        self.settings = Settings(self.plugins.options(), given)
        self._services = Services(self.plugins, self.settings)
        self.logging = embedded_log_control(self.settings) if log is None else log
        self.bytes_in_flight = ByteBudget(self.settings["max-bytes-in-flight"] or default_limit())
        self._runner = runner
        self._state = "NEW"
        self._models: Models
        self._frontends = Frontends()
        self._poller: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[bool] | None = None
        self.stop_steps = StopSteps()

    async def start(self) -> None:
        """Start the services, load the start-up models, then open the frontends.

        Raises ModelNotReadyError when a start-up model failed and `exit-on-error` is set, and NaiadError when a
        repository cannot be read or a frontend cannot listen; the server is stopped then.
        """
        self._state = "STARTING"
        try:
            self._assemble()
        except BaseException:
            self._state = "STOPPED"  # nothing has begun that would have to end
            raise
        try:
            await self._services.start(self)
            await load_start_up_models(self._models, self.settings)
            if self._stopping is not None:
                raise ShuttingDownError("the server was stopped while its models loaded")
            await self._frontends.start(self.plugins.frontends().values(), self)
        except BaseException:
            await self.stop()
            raise
        self._state = "READY"
        if self.settings["model-control-mode"] == "poll":
            following = follow_disk(self._models, self.settings["repository-poll-secs"])
            self._poller = asyncio.get_running_loop().create_task(following)

    def _assemble(self) -> None:
        """Make the parts of the server. Raises NaiadError for options and plugins that do not fit."""
        self._calls = Calls(lambda: self._models, self.load, self.unload, self._runner)
        loader = Loader(
            self.plugins, self.settings, self._calls, self._runner, self._services.find(Metrics), self.service
        )
        self._models = Models(loader, self.settings)
        self._gates = loader.gates
        for warning in self.plugins.warnings():
            _logger.warning("%s", warning)

    async def stop(self, lame_duck: float = 0.0) -> bool:
        """Take no new requests, answer those in flight within `exit-timeout-secs`, and free everything.

        For up to `lame_duck` seconds before, the server is no longer ready but still answers what clients that are
        connected send; this is part of `exit-timeout-secs`, of which it takes half at most. Returns whether all ended
        in time. Later calls wait for the first, and return the same.
        """
        if self._state == "NEW" or (self._state == "STOPPED" and self._stopping is None):
            return True
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop(lame_duck))
        return await asyncio.shield(self._stopping)

    async def _stop(self, lame_duck: float) -> bool:
        steps = self.stop_steps
        deadline: float = monotonic() + self.settings["exit-timeout-secs"]

        def seconds() -> float:
            return max(0.0, deadline - monotonic())

        if lame_duck and self._state == "READY":
            self._state = "DRAINING"
            limit = min(lame_duck, seconds() / 2)
            waiting = self._frontends.without_clients(limit)
            await steps.run("the lame-duck time", waiting, limit + _SPARE_SECONDS, None)
        self._state = "STOPPING"
        if self._poller is not None:
            self._poller.cancel()
            await steps.run("the repository poller", self._poller, _SPARE_SECONDS, None)
        await steps.run("sequences", self._models.finish_sequences(seconds()), seconds() + _SPARE_SECONDS, None)
        await steps.run("the frontends", self._frontends.stop(seconds()), seconds() + _SPARE_SECONDS, None)
        ended = await steps.run("the models", self._models.close(seconds()), None, False)  # bounds each of its parts
        await self._services.stop(steps, lambda: max(_SECONDS_TO_WRITE, seconds()))
        await steps.run("the rest", self._free(), _SPARE_SECONDS, None)
        self._state = "STOPPED"
        if not ended:
            _logger.error("some instances did not end within %g s", self.settings["exit-timeout-secs"])
        return ended

    async def _free(self) -> None:
        self._calls.close()

    async def __aenter__(self) -> "Server":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # Inference

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> SubmittedRequest:
        """Send a request on its way; `deliver` gets its response or error on the event loop's thread.

        Without `streams` it gets exactly one. With it, a decoupled model's responses come one by one: all but the last
        have `final` unset, and the last may be empty or an error. Raises NaiadError for what can be refused at once:
        unknown model, wrong input, full queue. `SubmittedRequest.cancel` says that the caller went away; nothing is
        delivered after it. `pause` and `resume` say how fast the caller reads.
        """
        if self._state not in ("READY", "STARTING", "DRAINING") and not (
            self._state == "STOPPING" and self._models.handover.version_for(request)
        ):
            raise ShuttingDownError(f"the server is {self._state} and takes no inference requests")
        version = self._models.version_for(request)
        if request.parameters and not version.stages.parameters.isdisjoint(request.parameters):
            return version.stages.submit(request, deliver, streams)
        return version.submit(request, deliver, streams)

    async def infer(self, request: Request) -> Response:
        """The response to a request. Raises its error; cancelling the task takes the request back."""
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        call = self.submit(request, functools.partial(_settle, answer))
        try:
            return await answer
        finally:
            call.cancel()
            del answer, call  # they hold an error, whose traceback holds this frame and the request

    def stream(self, request: Request) -> AsyncGenerator[Response, None]:
        """The responses to a request, one by one, no faster than they are taken. Raises its error.

        Closing the generator takes the request back.
        """
        return responses(lambda deliver: self.submit(request, deliver, streams=True))

    def has_work(self) -> bool:
        """Whether a request was taken in that is not answered yet, or a large message is on its way in or out."""
        return self.bytes_in_flight.reserved > 0 or self._models.has_work()

    # Health

    def live(self) -> bool:
        """Whether the server runs at all; it is live from the moment it listens until it has stopped."""
        return self._state in ("STARTING", "READY", "DRAINING", "STOPPING")

    @property
    def draining(self) -> bool:
        """Whether the server is about to stop, so that clients should connect elsewhere; it may still answer them."""
        return self._state in ("DRAINING", "STOPPING", "STOPPED")

    def ready(self) -> Readiness:
        """Whether the server can serve what it was asked to serve, and why not.

        With `strict-readiness` off only the server's own state counts.
        """
        if self._state != "READY":
            return Readiness(False, (f"the server is {self._state}",))
        if not self.settings["strict-readiness"]:
            return Readiness(True)
        return self._models.readiness(self.settings["model-control-mode"] != "explicit")

    def model_ready(self, name: str, version: int = 0) -> Readiness:
        """Whether a version has an instance that can serve. Raises NotFoundError or ModelNotReadyError."""
        return self._models.find(name, version).readiness()

    # What plugins bring beside models

    def service(self, kind: type[ServiceT]) -> ServiceT:
        """The service of that kind, one for the whole server.

        Raises UnsupportedError, with what to install, where no plugin brings it.
        """
        return self._services.require(kind)

    def cache_factory(self, name: str) -> CacheFactory:
        """The kind of cache of that name. Raises NotFoundError with what is installed and what to install."""
        return self.plugins.cache(name)

    # What is served

    def metadata(self) -> ServerMetadata:
        """The server's name, version and protocol extensions."""
        return ServerMetadata(self.settings["id"], __version__, extensions(self.plugins, self._services))

    def model_metadata(self, name: str, version: int = 0) -> ModelMetadata:
        """A model's inputs and outputs. Raises NotFoundError or ModelNotReadyError."""
        found = self._models.find(name, version).metadata
        return found if version else replace(found, versions=self._models.ready_versions(name))

    def model_config(self, name: str, version: int = 0) -> ModelConfig:
        """A model's completed and normalised configuration. Raises NotFoundError or ModelNotReadyError."""
        return self._models.find(name, version).config

    def labels(self, name: str, output: str, version: int = 0) -> tuple[str, ...]:
        """The lines of an output's label file; none without one. Raises NotFoundError or ModelNotReadyError."""
        return self._models.find(name, version).labels.get(output, ())

    def statistics(self, name: str = "", version: int = 0) -> list[ModelStatistics]:
        """The counters of all models, of one, or of one version. Raises NotFoundError or ModelNotReadyError."""
        return self._models.statistics(name, version)

    def version_reports(self) -> Iterator[VersionReport]:
        """Every version that serves, by name; each is reported as it stands when the iterator reaches it."""
        return map(report_of, self._models.serving())

    def metric_families(self) -> list[MetricFamily]:
        """The metrics of execution gates and services as they stand, also of families without samples."""
        found: list[MetricFamily] = []
        for source in (self._gates, *self._services):
            if isinstance(source, MetricSource):
                try:
                    found.extend(source.metrics())
                except BaseException as error:
                    raise_interrupt(error)
                    _logger.exception("the metrics of a %s cannot be read", type(source).__name__)
        return found

    def instances(self, name: str, version: int = 0) -> tuple[InstanceReport, ...]:
        """The instances of a version. Raises NotFoundError or ModelNotReadyError."""
        return self._models.find(name, version).instances()

    def index(self, ready: bool = False) -> list[IndexEntry]:
        """Every model of the repositories with its versions, their states and the reasons; reads no disk.

        Models that nobody loaded are listed as of the last read: at the start, by `fresh_index`, and by each poll.
        """
        return self._models.index(ready)

    async def fresh_index(self, ready: bool = False) -> list[IndexEntry]:
        """As `index`, once the repositories have been read again, on a thread; concurrent callers share a read."""
        return await self._models.fresh_index(ready)

    # Model control

    async def load(self, name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
        """Load or reload a model, with a JSON configuration and files (`1/model.onnx`) in place of its folder's.

        Returns when it is READY. Raises UnavailableError unless the control mode is explicit, NotFoundError without
        such a model, InvalidArgumentError when it fails; an earlier generation then goes on serving.
        """
        self._require_explicit_control()
        await self._models.load(name, config, files)

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Take a model out of service; returns when it takes no more requests.

        `unload_dependents` concerns the models that an ensemble is composed of, and no others. Raises
        UnavailableError unless the control mode is explicit.
        """
        self._require_explicit_control()
        await self._models.unload(name, unload_dependents)

    def _require_explicit_control(self) -> None:
        mode = self.settings["model-control-mode"]
        if mode != "explicit":
            raise UnavailableError(
                "explicit model load / unload is not allowed if polling is enabled; "
                f"the model control mode is '{mode}', start the server with --model-control-mode=explicit"
            )


def _settle(answer: "asyncio.Future[Response]", outcome: Outcome) -> None:
    if answer.done():
        return
    if isinstance(outcome, NaiadError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)

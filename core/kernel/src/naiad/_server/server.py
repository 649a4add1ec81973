"""The server: the parts that its plugins bring, from its start to its stop, and the API that frontends use."""

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

from naiad import reports
from naiad._lifecycle.servables import instances_of, label, occupancy_of, readiness_of
from naiad._plugins.registry import PluginRegistry
from naiad._server.composition import compose, plugins_of
from naiad._server.reports import extensions_of, reports_of
from naiad._server.responses import responses, single_response
from naiad._server.services import SPARE_SECONDS
from naiad._server.startup import load_startup_models, poll_repositories
from naiad._server.stop_steps import StopSteps
from naiad._version import __version__
from naiad.cache import CacheFactory
from naiad.errors import ShuttingDownError, UnavailableError
from naiad.extend import LoopRunner
from naiad.foreign_errors import contained
from naiad.in_flight import Occupancy, SubmittedRequest
from naiad.options import Settings
from naiad.server import Deliver, Named, ServiceT
from naiad.types import Request, Response
from naiad_config import Files, ModelConfig, sent_paths
from naiad_statistics.reports import ModelStatistics

_logger = logging.getLogger("naiad")

_SECONDS_TO_WRITE = 1.0
"""So long services may write and close what they hold, after everything else took all of `exit-timeout-secs`."""


class Server:
    """An inference server, with or without frontends. Use it as `async with Server(model_repository=[...]) as server`.

    `plugins` None takes the installed ones, a registry its own; a list takes these and the kernel's own. `options` are
    those of `naiad serve`, as values. `runner` runs the event loop, where its threads may change; `services` are the
    program's. Raises NaiadError for what does not fit. Every method is for the event loop that called `start`.
    """

    def __init__(
        self,
        *,
        model_repository: Sequence[str | Path] = (),
        plugins: Sequence[object] | PluginRegistry | None = None,
        options: Mapping[str, Any] | None = None,
        runner: LoopRunner | None = None,
        services: Sequence[Named] = (),
    ) -> None:
        values = dict(options or {})
        if model_repository:
            values["model-repository"] = tuple(str(root) for root in model_repository)
        self.plugins = plugins_of(plugins)
        self.settings = Settings(self.plugins.options(), values)
        self.stop_steps = StopSteps()
        parts = compose(self.plugins, self.settings, runner, services)
        self._services, self._gates = parts.services, parts.gates
        self._models, self._frontends = parts.models, parts.frontends
        self._runner, self._state = runner, "NEW"
        self._opened = asyncio.Event()  # services and frontends have started, or never will
        self._poller: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[bool] | None = None

    async def start(self) -> None:
        """Start the services, open the frontends, then load the start-up models.

        Raises ModelNotReadyError when a start-up model failed and `exit-on-error` is set, and NaiadError when a
        repository cannot be read or a frontend cannot listen; the server is stopped then. It starts only once.
        """
        if self._state != "NEW":
            raise UnavailableError(f"the server is {self._state} already, and starts only once; make another one")
        self._state = "STARTING"
        for warning in self.plugins.warnings():
            _logger.warning("%s", warning)
        try:
            await self._services.start(self)
            await self._frontends.start(self)
            self._opened.set()
            await load_startup_models(self._models, self.settings)
            if self._stopping is not None:
                raise ShuttingDownError("the server was stopped while its models loaded")
        except BaseException:
            self._opened.set()
            await self.stop()
            raise
        self._state = "READY"
        for name, address in self._frontends.addresses.items():
            _logger.info("%s frontend listens at %s", name, address)
        if self.settings["model-control-mode"] == "poll":
            self._poller = asyncio.create_task(poll_repositories(self._models, self.settings["repository-poll-secs"]))

    async def stop(self, lame_duck: float = 0.0) -> bool:
        """Take no new requests, answer those in flight within `exit-timeout-secs`, and free everything.

        For up to `lame_duck` seconds before, the server is no longer ready but still answers what clients that are
        connected send; this is part of `exit-timeout-secs`, of which it takes half at most. Returns whether all ended
        in time. Later calls wait for the first, and return the same.
        """
        if self._state == "NEW":
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
            await steps.run("the lame-duck time", self._frontends.without_clients(limit), limit + SPARE_SECONDS, None)
        self._state = "STOPPING"
        await steps.run("the start", self._opened.wait(), seconds(), False)
        if self._poller is not None:
            self._poller.cancel()
            await steps.run("the repository poller", self._poller, SPARE_SECONDS, None)
        await steps.run("sequences", self._models.finish_sequences(seconds()), seconds() + SPARE_SECONDS, None)
        await steps.run("the frontends", self._frontends.stop(seconds()), seconds() + SPARE_SECONDS, None)
        ended = await steps.run("the models", self._models.close(seconds()), None, False)  # bounds each of its parts
        await self._services.stop(steps, lambda: max(_SECONDS_TO_WRITE, seconds()))
        self._state = "STOPPED"
        return ended

    async def __aenter__(self) -> "Server":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # Inference

    def submit(self, request: Request, deliver: Deliver, streams: bool = False) -> SubmittedRequest:
        """See `ServerApi.submit`. A stopping server takes only what belongs to a request that it has taken."""
        if (
            self._state not in ("READY", "STARTING", "DRAINING")
            and request.caller is None  # else it is part of a request that was taken
            and not (self._state == "STOPPING" and self._models.sticky_routing.version_for(request))
        ):
            raise ShuttingDownError(f"the server is {self._state} and takes no inference requests")
        version = self._models.serving_versions.get(request.model_name, {}).get(request.version)
        if version is None or request.correlation_id:
            version = self._models.version_for(request)
        try:
            if (
                request.parameters
                and request.caller is None
                and not version.stages.parameters.isdisjoint(request.parameters)
            ):
                return version.stages.submit(request, deliver, streams)
            return version.submit(request, deliver, streams)
        except BaseException:  # a NaiadError is raised as it is
            with contained(f"submitting to {label(version)}", model=version.name):
                raise

    async def infer(self, request: Request) -> Response:
        """The response to a request. Raises its error; cancelling the task takes the request back."""
        return await single_response(functools.partial(self.submit, request))

    def stream(self, request: Request) -> AsyncGenerator[Response, None]:
        """The responses to a request, one by one, no faster than they are read; closing it takes the request back."""
        return responses(functools.partial(self.submit, request, streams=True))

    def has_work(self) -> bool:
        """Whether a request was taken in that is not answered yet."""
        return self._models.has_work()

    # Health

    def live(self) -> bool:
        """Whether the server runs at all; it is live from the moment it listens until it has stopped."""
        return self._state in ("STARTING", "READY", "DRAINING", "STOPPING")

    @property
    def draining(self) -> bool:
        """Whether the server is about to stop, so that clients should connect elsewhere; it may still answer them."""
        return self._state in ("DRAINING", "STOPPING", "STOPPED")

    def ready(self) -> reports.Readiness:
        """Whether the server can serve its models; with `strict-readiness` off only its own state counts."""
        if self._state != "READY":
            progress = f", {self._models.progress()}" if self._state == "STARTING" else ""
            return reports.Readiness(False, (f"the server is {self._state}{progress}",), starting=bool(progress))
        if not self.settings["strict-readiness"]:
            return reports.Readiness(True)
        return self._models.readiness(self.settings["model-control-mode"] == "none")

    def model_ready(self, name: str, version: int = 0) -> reports.Readiness:
        """Whether a version has an instance that can serve."""
        return readiness_of(self._models.find(name, version))

    # What plugins bring beside models

    def service(self, kind: type[ServiceT]) -> ServiceT:
        """The service of that kind. Raises UnsupportedError, with what to install, where no plugin brings it."""
        return self._services.require(kind)

    def cache_factory(self, name: str) -> CacheFactory:
        """The kind of cache of that name. Raises NotFoundError with what is installed and what to install."""
        return self.plugins.find("cache", name, self.plugins.caches())

    # What is served

    def metadata(self) -> reports.ServerMetadata:
        """The server's name, version and protocol extensions."""
        return reports.ServerMetadata(self.settings["id"], __version__, extensions_of(self.plugins, self._services))

    def model_metadata(self, name: str, version: int = 0) -> reports.ModelMetadata:
        """A model's inputs and outputs."""
        config = self._models.find(name, version).config
        return reports.ModelMetadata.of(config, (version,) if version else self._models.ready_versions(name))

    def model_config(self, name: str, version: int = 0) -> ModelConfig:
        """A model's completed and normalised configuration."""
        return self._models.find(name, version).config

    def labels(self, name: str, output: str, version: int = 0) -> tuple[str, ...]:
        """The lines of an output's label file; none without one."""
        return self._models.find(name, version).labels.get(output, ())

    def statistics(self, name: str = "", version: int = 0) -> list[ModelStatistics]:
        """The counters of all models, of one, or of one version."""
        return self._models.statistics(name, version)

    def version_reports(self) -> Iterator[reports.VersionReport]:
        """Every version that serves, by name; each is reported as it stands when the iterator reaches it."""
        for version in self._models.serving():
            yield from reports_of(version)

    def contributors(self) -> Iterator[object]:
        """The factory of execution gates and every service of plugins, for what they offer besides."""
        return iter((self._gates, *self._services))

    def instances(self, name: str, version: int = 0) -> tuple[reports.InstanceReport, ...]:
        """The instances of a version."""
        return instances_of(self._models.find(name, version))

    def occupancy(self) -> Iterator[Occupancy]:
        """The instances of each version that executes something, and what servables limit besides."""
        return (each for version in self._models.alive for each in occupancy_of(version))

    def index(self, ready: bool = False) -> list[reports.IndexEntry]:
        """Every model of the repositories with its versions, states and reasons, as of the last read of the disk."""
        return self._models.index(ready)

    async def fresh_index(self, ready: bool = False) -> list[reports.IndexEntry]:
        """As `index`, once the repositories have been read again, on a thread; concurrent callers share a read."""
        return await self._models.fresh_index(ready)

    # Model control

    async def load(
        self, name: str, config: str = "", files: Files | None = None, *, within: str = "", trusted: bool = True
    ) -> None:
        """See `ServerApi.load`."""
        async with self._models.nested(within, name):
            self._require_explicit_control()
            await self._models.load(name, config, files, () if trusted else sent_paths(config, files))

    async def unload(self, name: str, unload_dependents: bool = False, *, within: str = "") -> None:
        """See `ServerApi.unload`. A server that stops unloads all models anyway."""
        if not self._models.closed:
            async with self._models.nested(within, name):
                self._require_explicit_control()
                await self._models.unload(name, unload_dependents)

    def release_loop(self) -> None:
        """See `ServerApi.release_loop`."""
        if self._runner is not None:
            self._runner.release_loop()

    def _require_explicit_control(self) -> None:
        mode = self.settings["model-control-mode"]
        if mode != "explicit":
            raise UnavailableError(
                "explicit model load / unload is not allowed if polling is enabled, nor in the mode 'none'; "
                f"the model control mode is '{mode}', start the server with --model-control-mode=explicit"
            )

"""From a model folder to loaded versions: the configuration is read, completed and checked, then the backend loads."""

import asyncio
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import current_thread, main_thread
from typing import cast

from naiad._kernel.bounded_threads import BoundedThreads
from naiad._kernel.calls.following import FollowedWaits
from naiad._kernel.calls.model_calls import Calls, tell_loaded
from naiad._kernel.configs import (
    WrittenConfig,
    backend_settings,
    check,
    in_place,
    read_config,
    require_folder,
    versions_of,
    wanted_scheduler,
)
from naiad._kernel.detection import resolve_backend, told_of_rivals
from naiad._kernel.plugins import PluginRegistry
from naiad._kernel.prepared import PreparedDependent
from naiad._kernel.repository import ModelSource
from naiad._kernel.requests import RequestChecker
from naiad._kernel.stages import OfferedStages, VersionStages, stage_context
from naiad._kernel.statistics import VersionCounters
from naiad._kernel.version import ModelVersion, labels_of
from naiad._kernel.warmup_progress import Warmups
from naiad._kernel.worker_kinds import KERNEL_KINDS, worker_for
from naiad.backend import Backend, Model, ModelContext, Placement
from naiad.calls import NoModels
from naiad.codec import BatchCodec
from naiad.errors import InternalError, NaiadError, UnsupportedError
from naiad.extend import FindService, LoopRunner, MakeWorker, Submit
from naiad.foreign_errors import describe_error
from naiad.gpus import compute_capability, gpu_count
from naiad.metrics import MetricRegistry, Metrics, VersionObserver
from naiad.options import Settings
from naiad.scheduler import SchedulerFactory
from naiad.servables import RequestCounters, ServableContext, ServableFactory
from naiad.server import ServiceT
from naiad.threads import on_own_thread
from naiad.types import Request
from naiad.warmup import WarmupSample
from naiad_config import InstanceKind, ModelConfig
from naiad_config.normalisation import instance_placements, normalise
from naiad_config.validation import misnamed

_logger = logging.getLogger("naiad.model")
SECONDS_TO_CLOSE = 30.0
"""So long a load that failed waits for what it had loaded to close; then it fails all the same."""


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A model that is ready to be loaded: a context for each version to serve, and who loads, schedules and runs it."""

    contexts: tuple[ModelContext, ...]
    backend: Backend
    factory: SchedulerFactory
    placements: tuple[Placement, ...]
    worker: MakeWorker


def _no_service(kind: type[ServiceT]) -> ServiceT:
    raise UnsupportedError(f"there is no server that has a service '{kind.name}'")


class Loader:
    """Prepares and loads models. `prepare` blocks and belongs on a thread; `load` awaits what blocks.

    `metrics` is the metrics service, None where there is none; `gates` decide when their slots may execute, None where
    nothing is limited; `threads` run what blocks. `calls` are how the models call each other, None where there is no
    server; `runner` runs the event loop on changing threads, None where the loop stays on its thread; `service` finds
    the services of the server.
    """

    def __init__(
        self,
        registry: PluginRegistry,
        settings: Settings,
        calls: Calls | None = None,
        runner: LoopRunner | None = None,
        metrics: Metrics | None = None,
        service: FindService = _no_service,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self.threads = BoundedThreads("naiad-load", settings["model-load-thread-count"])
        self.gates = registry.gates(settings)
        self._metrics = metrics
        self.warmups = Warmups()
        self._calls = calls
        self._worker_kinds = (*registry.workers(settings, runner), *KERNEL_KINDS)
        self._short_switch_interval = nullcontext if runner is None else runner.short_switch_interval
        self._service = service
        self._backends = registry.backends()
        self._backend_settings = backend_settings(settings["backend-config"])

    def prepare(self, source: ModelSource) -> PreparedModel | PreparedDependent:
        """Read, complete, normalise and check a configuration. Raises NaiadError; ConfigError has all problems."""
        with _carried_to_the_loop(source.name):
            require_folder(source)
            return self._prepare(source)

    async def prepare_on_thread(self, source: ModelSource) -> PreparedModel | PreparedDependent:
        """As `prepare`, for the event loop."""
        with self._short_switch_interval():
            return await self.threads.run(self.prepare, source)

    def _prepare(self, source: ModelSource) -> PreparedModel | PreparedDependent:
        written = read_config(source, self._settings["model-config-name"])
        config = replace(written.config, name=source.name)
        wrong_name = misnamed(written.config, source.name)
        check(replace(written, config=config), source, wrong_name, complete=False)
        versions = versions_of(source, config)
        for warning in () if self._metrics is None else self._metrics.problems(config):
            self._context(config, versions[-1], source).logger.warning("%s", warning)
        servables = self._registry.servable(config)
        if servables is not None:
            return self._prepare_dependent(servables, written, config, source, versions)
        with in_place(written):
            config = self._with_backend(config, source, versions[0])
            backend = self._registry.backend(config.backend)
            context = self._context(config, versions[-1], source)
            try:
                if not self._settings["disable-auto-complete-config"]:
                    config = self._completed(backend, context)
                return self._prepared(written, config, source, versions, backend)
            except BaseException:
                forget = getattr(backend, "forget", None)
                if forget is not None:
                    forget(context)
                raise

    def _prepared(
        self,
        written: WrittenConfig,
        config: ModelConfig,
        source: ModelSource,
        versions: Sequence[int],
        backend: Backend,
    ) -> PreparedModel:
        config = normalise(config, traits=backend.traits, gpus=gpu_count())
        check(replace(written, config=config), source)
        return PreparedModel(
            contexts=tuple(
                replace(
                    self._context(config, version, source),
                    metrics=MetricRegistry() if self._metrics is None else self._metrics.registry(),
                    models=NoModels() if self._calls is None else self._calls.of_model(config.name),
                )
                for version in versions
            ),
            backend=backend,
            factory=self._registry.scheduler(wanted_scheduler(config)),
            placements=instance_placements(config, gpu_count()),
            worker=worker_for(config, backend.traits, self._worker_kinds),
        )

    def _prepare_dependent(
        self,
        factory: ServableFactory,
        written: WrittenConfig,
        config: ModelConfig,
        source: ModelSource,
        versions: Sequence[int],
    ) -> PreparedDependent:
        """What a servable factory serves has no backend, and is bound when the models that it depends on are loaded."""
        config = normalise(factory.complete(config), traits=None)
        check(replace(written, config=config), source)
        contexts = tuple(self._context(config, version, source) for version in versions)
        observer = self._observer(config)
        context = ServableContext(
            contexts,
            labels_of(contexts[-1]),
            counters=functools.partial(VersionCounters, observer),
            validator=_validator,
            stages=self._servable_stages,
            waits=FollowedWaits(),
        )
        return PreparedDependent(factory.name, contexts, written, factory.prepare(context))

    def _servable_stages(
        self, context: ModelContext, counters: RequestCounters, submit: Submit, proceed: Submit
    ) -> VersionStages:
        own = cast("VersionCounters", counters)  # which are those of the context
        return VersionStages(self._stages(context, own), submit, proceed)

    def _with_backend(self, config: ModelConfig, source: ModelSource, version: int) -> ModelConfig:
        traits = [backend.traits for backend in dict.fromkeys(self._backends.values())]
        installed = {report.distribution: report.skipped for report in self._registry.plugins if report.distribution}
        folder = source.directory / str(version)
        found = resolve_backend(config, folder, traits, installed)
        rivals = told_of_rivals(config, found.backend, folder, traits)
        if rivals:
            self._context(found, version, source).logger.warning("%s", rivals)
        return found

    def _completed(self, backend: Backend, context: ModelContext) -> ModelConfig:
        """What the backend makes of the configuration; its wish to merge requests needs a scheduler that can."""
        config = backend.complete(context)
        wished = config.dynamic_batching is not None and wanted_scheduler(context.config) == "default"
        if wished and all(factory.choice != "dynamic_batching" for factory in self._registry.schedulers()):
            context.logger.warning(
                "model '%s' could merge requests into batches and does not: install naiad-scheduler-dynamic",
                config.name,
            )
            return replace(config, dynamic_batching=None)
        return config

    async def load(self, prepared: PreparedModel, context: ModelContext) -> ModelVersion:
        """Load one version, with every instance warmed up. Raises whatever making an instance raised.

        Python that imports for seconds takes the interpreter from the event loop for 5 ms at a time, and the loop needs
        it several times for each request: so the switch interval is short meanwhile.
        """
        try:
            with self._short_switch_interval():
                return await self._load(prepared, context)
        except BaseException:
            context.metrics.close()
            raise

    async def _load(self, prepared: PreparedModel, context: ModelContext) -> ModelVersion:
        counters = VersionCounters(self._observer(context.config))
        load = self._load_blocking
        model, labels, warmup, codec, stages = await self.threads.run(load, prepared, context, counters)
        try:
            version = ModelVersion(
                context,
                model,
                prepared.placements,
                labels,
                warmup,
                prepared.worker,
                counters,
                self.gates,
                codec,
                stages,
            )
        except BaseException:
            closing = asyncio.ensure_future(on_own_thread(f"naiad-close-{context.config.name}", _close_quietly, model))
            await asyncio.wait([closing], timeout=SECONDS_TO_CLOSE)
            raise
        try:
            with self.warmups.following(version.name, version.version, version.warmup.progress):
                await version.start(prepared.backend.traits, prepared.factory)
        except asyncio.CancelledError:
            await version.close(0.0)  # whoever cancels a load does not wait for a model that hangs
            raise
        except BaseException:
            await version.close(SECONDS_TO_CLOSE)
            raise
        tell_loaded(context, version)
        return version

    def _load_blocking(
        self, prepared: PreparedModel, context: ModelContext, counters: VersionCounters
    ) -> tuple[Model, dict[str, tuple[str, ...]], Sequence[WarmupSample], BatchCodec | None, OfferedStages]:
        with _carried_to_the_loop(context.config.name):
            labels, codec = labels_of(context), _codec_of(prepared.factory, context)
            warmup, stages = self._registry.warmup(context), self._stages(context, counters)
            return prepared.backend.load(context), labels, warmup, codec, stages

    def _stages(self, context: ModelContext, counters: VersionCounters) -> OfferedStages:
        """Blocks, but not for an ensemble."""
        cached = context.config.response_cache
        if cached is not None and cached.enable and "cache-config" not in self._settings:
            advice = " ".join(self._registry.where_to_get("service", "cache"))
            context.logger.warning("model '%s' asks for a response cache. %s", context.config.name, advice)
        return self._registry.stages(stage_context(context, self._settings, counters, self._service))

    def _observer(self, config: ModelConfig) -> VersionObserver | None:
        return None if self._metrics is None else self._metrics.observer(config)

    def _context(self, config: ModelConfig, version: int, source: ModelSource) -> ModelContext:
        settings = {**self._backend_settings.get("", {}), **self._backend_settings.get(config.backend, {})}
        wants_gpu = any(group.kind is InstanceKind.KIND_GPU for group in config.instance_group)
        return ModelContext(
            config=config,
            version=version,
            model_directory=source.directory,
            version_directory=source.directory / str(version),
            settings=settings,
            compute_capability=compute_capability() if wants_gpu else "",
        )


def _validator(config: ModelConfig) -> Callable[[Request], int]:
    check_request = RequestChecker(config).check
    return lambda request: check_request(request)[0]


def _codec_of(factory: SchedulerFactory, context: ModelContext) -> BatchCodec | None:
    """The batch codec that the scheduler brings for a model version, if any. Blocks."""
    make = getattr(factory, "codec", None)
    return None if make is None else make(context)


def _close_quietly(model: Model) -> None:
    """Close a model that no version was made of; the error that kept it from one matters more."""
    try:
        model.close()
    except BaseException:
        _logger.exception("closing a model that did not load failed")


@contextmanager
def _carried_to_the_loop(name: str) -> Iterator[None]:
    """Whatever a plugin or a model raises in the block, as a NaiadError, with the traceback in the log.

    SystemExit would end the event loop that waits for the thread, StopIteration never reach it. On the main thread,
    where `naiad check` prepares models, a KeyboardInterrupt is the user's own.
    """
    try:
        yield
    except NaiadError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            raise
        _logger.exception("loading model '%s' failed", name, extra={"model": name})
        raise InternalError(describe_error(error)) from error

"""Preparation of models: a configuration is read, completed by its backend, normalised and checked."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from naiad._engine.stages import OfferedStages, VersionStages, stage_context
from naiad._engine.statistics import VersionCounters
from naiad._engine.validation import RequestValidator
from naiad._engine.version import labels_of
from naiad._engine.worker_kinds import worker_for
from naiad._lifecycle import configs
from naiad._lifecycle.configs import WrittenConfig, check, locate_problems, scheduler_name
from naiad._lifecycle.detection import describe_rivals, resolve_backend
from naiad._lifecycle.prepared import Prepared, PreparedDependent, PreparedModel
from naiad._lifecycle.repository import ModelSource
from naiad._lifecycle.servables import loading
from naiad._plugins.registry import PluginRegistry
from naiad.backend import Backend, ModelContext
from naiad.call_service import ModelCallService
from naiad.calls import NoModels
from naiad.extend import FindService, Submit, WorkerKind
from naiad.metrics import Metrics, NoMetrics, VersionObserver
from naiad.options import Settings
from naiad.servables import RequestCounters, ServableContext, ServableFactory
from naiad.types import Request
from naiad_config import InstanceKind, ModelConfig
from naiad_config.normalisation import instance_placements, normalise
from naiad_config.validation import misnamed
from naiad_tensors.gpus import compute_capability, gpu_count


class Preparer:
    """Prepares models for a `Loader`, or for checks without a server.

    `service` finds services; `metrics` is the one for metrics, None where there is none. `workers` are the kinds of
    worker, the preferred one first. `calls` carries the calls of models to each other, None where they cannot.
    """

    def __init__(
        self,
        plugins: PluginRegistry,
        settings: Settings,
        service: FindService,
        metrics: Metrics | None,
        workers: Sequence[WorkerKind],
        calls: ModelCallService | None = None,
    ) -> None:
        self.calls = calls
        self._plugins = plugins
        self._settings = settings
        self._service = service
        self._metrics = metrics
        self._workers = workers
        self._no_models = NoModels(" ".join(plugins.where_to_get("service", ModelCallService.name)))
        self._backends = plugins.backends()
        self._backend_settings = configs.backend_settings(settings["backend-config"])

    def prepare(self, source: ModelSource) -> Prepared:
        """Read, complete, normalise and check a configuration. Blocks. Raises NaiadError; ConfigError has all of it."""
        with loading(source.name):
            configs.require_folder(source)
            return self._prepare(source)

    def loadable(self, context: ModelContext) -> ModelContext:
        """The context for one attempt to load that version, with metrics and calls of its own."""
        metrics = NoMetrics() if self._metrics is None else self._metrics.registry()
        models = self._no_models if self.calls is None else self.calls.of_version(context.config.name)
        return replace(context, metrics=metrics, models=models)

    def stages(self, context: ModelContext, counters: VersionCounters) -> OfferedStages:
        """The request stages of a version. Blocks, but not for an ensemble."""
        stages = self._plugins.stages(stage_context(context, self._settings, counters, self._service))
        return OfferedStages(stages, self._plugins.missing_parameters(stages))

    def observer(self, config: ModelConfig) -> VersionObserver | None:
        """What the metrics service counts of a version; None without that service."""
        return None if self._metrics is None else self._metrics.observer(config)

    def _prepare(self, source: ModelSource) -> Prepared:
        written = configs.read_config(source, self._settings["model-config-name"])
        config = replace(written.config, name=source.name)
        wrong_name = misnamed(written.config, source.name)
        check(replace(written, config=config), source, wrong_name, complete=False)
        versions = configs.versions_of(source, config)
        ignored = () if self._metrics is None else self._metrics.problems(config)
        for warning in (*self._plugins.unmet_needs(config), *ignored):
            self._context(config, versions[-1], source).logger.warning("%s", warning)
        servables = self._plugins.servable(config)
        if servables is not None:
            return self._prepare_dependent(servables, written, config, source, versions)
        with locate_problems(written):
            config = self._with_backend(config, source, versions[0])
            backend = self._plugins.backend(config.backend)
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
            contexts=tuple(self._context(config, version, source) for version in versions),
            backend=backend,
            factory=self._plugins.scheduler(scheduler_name(config)),
            placements=instance_placements(config, gpu_count()),
            worker=worker_for(config, backend.traits, self._workers),
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
        observer = self.observer(config)
        context = ServableContext(
            contexts,
            labels_of(contexts[-1]),
            counters=functools.partial(VersionCounters, observer),
            validator=_validator,
            stages=self._servable_stages,
        )
        return PreparedDependent(contexts, factory.name, written, factory.prepare(context))

    def _servable_stages(
        self, context: ModelContext, counters: RequestCounters, submit: Submit, proceed: Submit
    ) -> VersionStages:
        own = cast("VersionCounters", counters)  # which are those of the context
        return VersionStages(self.stages(context, own), submit, proceed)

    def _with_backend(self, config: ModelConfig, source: ModelSource, version: int) -> ModelConfig:
        traits = [backend.traits for backend in dict.fromkeys(self._backends.values())]
        installed = {report.distribution: report.skipped for report in self._plugins.plugins if report.distribution}
        folder = source.directory / str(version)
        resolved = resolve_backend(config, folder, traits, installed)
        if rivals := describe_rivals(config, resolved.backend, folder, traits):
            self._context(resolved, version, source).logger.warning("%s", rivals)
        return resolved

    def _completed(self, backend: Backend, context: ModelContext) -> ModelConfig:
        """What the backend makes of the configuration; a scheduling choice of its own needs a scheduler."""
        config = backend.complete(context)
        choice = scheduler_name(config)
        served = {scheduler_name(context.config), *(factory.choice for factory in self._plugins.schedulers())}
        if choice in served or getattr(config, choice, None) is None:
            return config
        advice = " ".join(self._plugins.where_to_get("scheduler", choice))
        context.logger.warning("model '%s' could use %s and does not. %s", config.name, choice, advice)
        return replace(config, **{choice: None})

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
    check_request = RequestValidator(config).check
    return lambda request: check_request(request)[0]

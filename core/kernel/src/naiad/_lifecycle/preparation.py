"""Preparation of models: a configuration is read, completed by its backend, normalised and checked."""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from naiad._engine.admission import RequestValidator
from naiad._engine.stages import OfferedStages, VersionStages, hold
from naiad._engine.worker_kinds import hosted, worker_for
from naiad._lifecycle.prepared import Held, Prepared, PreparedDependent, PreparedModel
from naiad._lifecycle.servables import loading
from naiad._plugins.known_plugins import needs_of
from naiad._plugins.registry import PluginRegistry
from naiad.backend import Backend, ModelContext
from naiad.extend import BackendSource, FindService, ModelService, StageContext, Submit, WorkerKind
from naiad.metrics import Metrics
from naiad.options import Settings
from naiad.repositories import GuardedModel, RepositoryAgent
from naiad.servables import ServableContext, ServableFactory
from naiad.types import Request
from naiad_config import InstanceKind, ModelConfig, Paths
from naiad_config.backend_settings import backend_settings
from naiad_config.detection import BackendSearch
from naiad_config.labels import read_labels
from naiad_config.model_folder import ModelFolder, read_model, repository_agents
from naiad_config.normalisation import instance_placements, normalise, scheduler_name
from naiad_config.stores import Location, folder_of
from naiad_config.uploads import refuse_code
from naiad_statistics.observers import VersionObserver
from naiad_statistics.versions import VersionCounters
from naiad_tensors import gpus


class Preparer:
    """Prepares models for a `Loader`, or for checks without a server.

    `service` finds services; `metrics` is the one for metrics, None where there is none. `workers` are the kinds of
    worker, the preferred one first. `of_models` are the services with an object for each version, `sources` those that
    find backends.
    """

    def __init__(
        self,
        plugins: PluginRegistry,
        settings: Settings,
        service: FindService,
        metrics: Metrics | None,
        workers: Sequence[WorkerKind],
        of_models: Sequence[ModelService] = (),
        sources: Sequence[BackendSource] = (),
    ) -> None:
        self._plugins = plugins
        self._settings = settings
        self._service = service
        self._metrics = metrics
        self._workers = workers
        self._of_models = of_models
        self._sources = sources
        self._backends = plugins.backends()
        self._backend_settings = backend_settings(settings["backend-config"])

    def prepare(
        self, location: Location, name: str = "", override: str = "", held: Held | None = None, sent: Paths = ()
    ) -> Prepared:
        """Read, complete, normalise and check the configuration of a model; `override` replaces its file.

        The name is that of the folder unless it is another. What agents need until the model is closed is added to
        `held`, None to end it at once. The files `sent` of a client may not be code unless that is allowed. Blocks.
        Raises NaiadError; ConfigError has all of it.
        """
        name, variant = name or location.name, self._settings["model-config-name"]
        with loading(name), ExitStack() as guards:
            directory = folder_of(location)
            agents = self._agents(directory, override, variant)
            for agent, parameters in agents:
                directory = guards.enter_context(agent.guard(GuardedModel(name, directory, parameters, self._settings)))
            prepared = self._prepare(read_model(directory, name=name, override=override, variant=variant), sent)
            if held is not None and agents:
                held.append(guards.pop_all())
            return prepared

    def loadable(self, context: ModelContext) -> ModelContext:
        """The context for one attempt to load that version, with parts of its own."""
        return replace(context, parts={service.name: service.part_of(context.config) for service in self._of_models})

    def stages(self, context: ModelContext, counters: VersionCounters) -> OfferedStages:
        """The request stages of a version. Blocks, but not for an ensemble."""
        stages = self._plugins.stages(StageContext(context, self._settings, counters, hold, self._service))
        return OfferedStages(stages, self._plugins.missing_parameters(stages))

    def observer(self, config: ModelConfig) -> VersionObserver | None:
        """What the metrics service counts of a version; None without that service."""
        return None if self._metrics is None else self._metrics.observer(config)

    def _agents(
        self, directory: Path, override: str, variant: str
    ) -> Sequence[tuple[RepositoryAgent, Mapping[str, str]]]:
        """The agents of a model, each with its parameters: those that are required, then the named ones in their order.

        Raises NotFoundError, with what to install, for one that no plugin offers: its model must not load unguarded.
        """
        named = repository_agents(directory, override=override, variant=variant)
        every = self._plugins.repository_agents()
        agents = [(self._plugins.find("repository agent", each.name, every), each.parameters) for each in named]
        required = [agent for agent in every.values() if agent.required(self._settings)]
        return [*((agent, {}) for agent in required if agent.name not in {each.name for each in named}), *agents]

    def _prepare(self, folder: ModelFolder, sent: Paths) -> Prepared:
        config = folder.config
        ignored = () if self._metrics is None else self._metrics.problems(config)
        for warning in (*self._plugins.unmet_needs(config), *ignored):
            self._context(config, folder, -1).logger.warning("%s", warning)
        servables = self._plugins.servable(config)
        if servables is not None:
            return self._prepare_dependent(servables, folder)
        with folder.locate_problems(), loading(config.name):
            config, named = self._with_backend(folder)
            for need in needs_of(config, "worker"):
                self._plugins.find("worker", need.name, {kind.name: kind for kind in self._workers})
            if sent and not self._settings["allow-uploaded-code"]:
                refuse_code(sent, config, named.traits.executes_files)
            context = self._context(config, folder, -1)
            backend = hosted(context, named, self._workers)
            try:
                if not self._settings["disable-auto-complete-config"]:
                    config = self._completed(backend, context)
                return self._prepared(config, folder, backend)
            except BaseException:
                forget = getattr(backend, "forget", None)
                if forget is not None:
                    forget(context)
                raise

    def _prepared(self, config: ModelConfig, folder: ModelFolder, backend: Backend) -> PreparedModel:
        config = normalise(config, traits=backend.traits, gpus=gpus.gpu_count())
        folder.check(config)
        return PreparedModel(
            contexts=self._contexts(config, folder),
            backend=backend,
            factory=self._plugins.scheduler(scheduler_name(config)),
            placements=instance_placements(config, gpus.gpu_count()),
            worker=worker_for(config, backend.traits, self._workers, self._plugins.what_to_install),
        )

    def _prepare_dependent(self, factory: ServableFactory, folder: ModelFolder) -> PreparedDependent:
        """What a servable factory serves has no backend, and is bound when the models that it depends on are loaded."""
        config = normalise(factory.complete(folder.config), traits=None)
        folder.check(config)
        contexts = self._contexts(config, folder)
        context = ServableContext(
            contexts,
            read_labels(config, contexts[-1].path_inside),
            counters=functools.partial(VersionCounters, self.observer(config)),
            validator=_validator,
            stages=self._servable_stages,
        )
        servable = factory.prepare(context)
        return PreparedDependent(contexts, factory.name, folder, servable, tuple(servable.dependencies))

    def _servable_stages(
        self, context: ModelContext, counters: VersionCounters, submit: Submit, proceed: Submit
    ) -> VersionStages:
        return VersionStages(self.stages(context, counters), submit, proceed)

    def _with_backend(self, folder: ModelFolder) -> tuple[ModelConfig, Backend]:
        """The configuration with its backend, which a plugin offers or else a source has by its name."""
        name = folder.config.backend or folder.config.name.rpartition(".")[2]
        sources = self._sources if name not in self._backends else ()
        more = [(name, each) for source in sources if (each := source.find_backend(name)) is not None]
        backends = {**self._backends, **dict(more)}
        search = BackendSearch(
            folder.config,
            folder.directory / str(folder.versions[0]),
            [backend.traits for backend in dict.fromkeys(backends.values())],
            functools.partial(self._plugins.what_to_install, "backend"),
            [
                f"{it.distribution} was skipped: {it.skipped}"
                for it in self._plugins.plugins
                if it.distribution and it.skipped
            ],
            [source.describe_search(name) for source in sources],
        )
        resolved = search.resolve()
        if rivals := search.describe_rivals():
            self._context(resolved, folder, 0).logger.warning("%s", rivals)
        return resolved, self._plugins.find("backend", resolved.backend, backends)

    def _completed(self, backend: Backend, context: ModelContext) -> ModelConfig:
        """What the backend makes of the configuration; a scheduling choice of its own needs a scheduler."""
        config = backend.complete(context)
        choice = scheduler_name(config)
        served = {scheduler_name(context.config), *(factory.choice for factory in self._plugins.schedulers())}
        if choice in served or getattr(config, choice, None) is None:
            return config
        advice = " ".join(self._plugins.where_to_get("scheduler", choice))
        context.logger.warning("model '%s' could use %s and does not. %s", config.name, choice, advice)
        no_choice: dict[str, Any] = {choice: None}
        return replace(config, **no_choice)

    def _contexts(self, config: ModelConfig, folder: ModelFolder) -> tuple[ModelContext, ...]:
        return tuple(self._context(config, folder, index) for index in range(len(folder.versions)))

    def _context(self, config: ModelConfig, folder: ModelFolder, index: int) -> ModelContext:
        """The context of one of the folder's versions."""
        settings = {**self._backend_settings.get("", {}), **self._backend_settings.get(config.backend, {})}
        wants_gpu = any(group.kind is InstanceKind.KIND_GPU for group in config.instance_group)
        version = folder.versions[index]
        return ModelContext(
            config=config,
            version=version,
            model_directory=folder.directory,
            version_directory=folder.directory / str(version),
            settings=settings,
            compute_capability=gpus.compute_capability() if wants_gpu else "",
        )


def _validator(config: ModelConfig) -> Callable[[Request], int]:
    check_request = RequestValidator(config).check
    return lambda request: check_request(request)[0]

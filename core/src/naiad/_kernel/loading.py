"""From a model folder to loaded versions: the configuration is read, completed and checked, then the backend loads."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path

from naiad._kernel.detection import resolve_backend
from naiad._kernel.gpus import compute_capability, gpu_count
from naiad._kernel.plugins import PluginRegistry
from naiad._kernel.repository import ModelSource, served_versions, version_numbers
from naiad._kernel.version import ModelVersion, labels_of
from naiad.backend import Backend, Model, ModelContext, Placement
from naiad.config import InstanceKind, ModelConfig
from naiad.config.json import parse_json
from naiad.config.lexer import Place
from naiad.config.normalisation import instance_placements, normalise
from naiad.config.text import parse_text_with_places
from naiad.config.validation import problems
from naiad.errors import ConfigError, InvalidArgumentError, NotFoundError, Problem
from naiad.options import Settings
from naiad.scheduler import SchedulerFactory
from naiad.warmup import WarmupSample

_logger = logging.getLogger("naiad.model")


@dataclass(frozen=True, slots=True)
class WrittenConfig:
    """A configuration as its author wrote it, the file it stands in, and where its keys stand there."""

    config: ModelConfig
    file: str
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A model that is ready to be loaded: one context for each version to serve, and who loads and schedules it."""

    contexts: tuple[ModelContext, ...]
    backend: Backend
    factory: SchedulerFactory
    placements: tuple[Placement, ...]


class Loader:
    """Prepares and loads models. `prepare` blocks and belongs on a thread; `load` awaits what blocks."""

    def __init__(self, registry: PluginRegistry, settings: Settings, executor: Executor) -> None:
        self._registry = registry
        self._settings = settings
        self._executor = executor
        self._backends = registry.backends()
        self._backend_settings = _backend_settings(settings["backend-config"])

    def read_config(self, source: ModelSource) -> WrittenConfig:
        """The configuration as the user wrote it; an empty one without a file. Raises ConfigError."""
        if source.config_override:
            told = "config of the load request"
            return WrittenConfig(parse_json(source.config_override, file=told), told)
        chosen = self._settings["model-config-name"]
        named = source.directory / "configs" / f"{chosen}.pbtxt"
        path = named if chosen and named.is_file() else source.directory / "config.pbtxt"
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return WrittenConfig(ModelConfig(), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem(f"cannot be read: {error}", file=str(path))]) from error
        parsed = parse_text_with_places(text, file=str(path))
        return WrittenConfig(parsed.config, str(path), parsed.places)

    def versions_of(self, source: ModelSource, config: ModelConfig) -> list[int]:
        """The versions to serve. Raises InvalidArgumentError when there is none."""
        available = version_numbers(source.directory)
        served = served_versions(available, config.version_policy)
        if not served:
            found = f"its version folders are {available}" if available else "it has no version folder, such as 1/"
            raise InvalidArgumentError(
                f"at least one version must be available under the version policy of model '{source.name}': {found}"
            )
        return served

    def prepare(self, source: ModelSource) -> PreparedModel:
        """Read, complete, normalise and check a configuration. Raises NaiadError; ConfigError has all problems."""
        parsed = self.read_config(source)
        if parsed.config.name and parsed.config.name != source.name:
            raise _misnamed(parsed, source.name)
        config = replace(parsed.config, name=source.name)
        versions = self.versions_of(source, config)
        if config.ensemble_scheduling is None and config.platform != "ensemble":
            traits = [backend.traits for backend in dict.fromkeys(self._backends.values())]
            config = resolve_backend(config, source.directory / str(versions[0]), traits)
        else:
            self._registry.scheduler("ensemble_scheduling")
        backend = self._registry.backend(config.backend)
        context = self._context(config, versions[-1], source)
        if not self._settings["disable-auto-complete-config"]:
            config = backend.complete(context)
        config = normalise(config, traits=backend.traits, gpus=gpu_count())
        found = problems(config, places=parsed.places, file=parsed.file, model_directory=source.directory)
        if found:
            raise ConfigError(found)
        return PreparedModel(
            contexts=tuple(self._context(config, version, source) for version in versions),
            backend=backend,
            factory=self._registry.scheduler(wanted_scheduler(config)),
            placements=instance_placements(config, gpu_count()),
        )

    async def load(self, prepared: PreparedModel, context: ModelContext) -> ModelVersion:
        """Load one version, with every instance warmed up. Raises whatever the backend raised."""
        loop = asyncio.get_running_loop()
        model, labels, warmup = await loop.run_in_executor(self._executor, self._load_blocking, prepared, context)
        version = ModelVersion(context, model, prepared.placements, labels, warmup)
        try:
            await version.start(prepared.backend.traits, prepared.factory)
        except BaseException:
            await loop.run_in_executor(self._executor, model.close)
            raise
        return version

    def _load_blocking(
        self, prepared: PreparedModel, context: ModelContext
    ) -> tuple[Model, dict[str, tuple[str, ...]], Sequence[WarmupSample]]:
        labels = labels_of(context)
        warmup = self._registry.warmup(context)
        return prepared.backend.load(context), labels, warmup

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


def wanted_scheduler(config: ModelConfig) -> str:
    """The parameter `scheduler` where it is given, else the member of `scheduling_choice`, else the default."""
    asked = config.parameters.get("scheduler")
    if asked is not None and asked.string_value:
        return asked.string_value
    for choice in ("dynamic_batching", "sequence_batching", "ensemble_scheduling"):
        if getattr(config, choice) is not None:
            return choice
    return "default"


def _backend_settings(texts: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """The settings by backend from `[BACKEND,]KEY=VALUE`; those for all backends are under ""."""
    settings: dict[str, dict[str, str]] = {}
    for text in texts:
        backend, comma, setting = text.partition(",")
        if not comma or "=" in backend:
            backend, setting = "", text
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise InvalidArgumentError(f"--backend-config '{text}' must be [BACKEND,]KEY=VALUE")
        settings.setdefault(backend, {})[key] = value
    return settings


def _misnamed(parsed: WrittenConfig, directory: str) -> ConfigError:
    line, column = parsed.places.get("name", (0, 0))
    problem = Problem(
        f"unexpected directory name '{directory}' for model '{parsed.config.name}', "
        "directory name must equal model name",
        "name",
        parsed.file,
        line,
        column,
        f'write name: "{directory}", or leave the name out',
    )
    return ConfigError([problem])


def write_overrides(files: Mapping[str, bytes], directory: Path) -> None:
    """Write the files of a load request into an empty folder.

    Raises InvalidArgumentError for a path that would leave it, before anything is written.
    """
    targets: dict[Path, bytes] = {}
    for name, content in files.items():
        path = Path(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise InvalidArgumentError(f"file override '{name}' must stay within model directory.")
        targets[directory / path] = content
    for target, content in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def not_found(name: str) -> NotFoundError:
    """The error for a model to load that no repository has."""
    return NotFoundError(
        f"failed to load '{name}', failed to poll from model repository: there is no folder of that name in it"
    )

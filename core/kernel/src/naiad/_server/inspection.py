"""Configurations of models, read, completed and checked without loading a model, as `naiad check` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from naiad._lifecycle.checking import problems_of_dependents
from naiad._lifecycle.prepared import Prepared
from naiad._plugins.registry import PluginRegistry
from naiad._server.composition import compose_preparer
from naiad.errors import ConfigError, NaiadError, NotFoundError
from naiad.options import Settings
from naiad.scheduler import SchedulerFactory
from naiad_config import ModelConfig
from naiad_config.labels import read_labels
from naiad_config.normalisation import normalise, scheduler_name
from naiad_config.stores import Location, RemoteModel, roots_of, scan
from naiad_config.text import parse_text_with_positions
from naiad_config.validation import problems
from naiad_tensors import gpus


class ModelInspector:
    """Reads models as a server with these plugins and settings would, and loads none."""

    def __init__(self, plugins: PluginRegistry, settings: Settings | None = None) -> None:
        self._plugins = plugins
        self._settings = Settings(plugins.options(), {}) if settings is None else settings
        self._preparer = compose_preparer(plugins, self._settings)

    def problems(self, repositories: Sequence[str | Path]) -> Mapping[str, Sequence[str]]:
        """The problems of each model by its name; none for a sound one.

        Raises NotFoundError without such a repository.
        """
        folders = scan(roots_of(repositories, self._plugins.repository_scheme, self._settings))
        prepared: dict[str, Prepared] = {}
        every = {name: self._problems(name, folders[name], prepared) for name in sorted(folders)}
        broken = {name: problems for name, problems in every.items() if problems}
        return every | problems_of_dependents({name: prepared[name] for name in folders if name not in broken}, broken)

    def config(self, path: Location) -> ModelConfig:
        """The configuration as the server would work by it.

        A model directory, or a model of a store, is completed by its backend, a file is not. Raises NotFoundError where
        nothing is at `path`, and ConfigError with every problem of what is there.
        """
        if isinstance(path, RemoteModel) or path.is_dir():
            path = path if isinstance(path, RemoteModel) else path.absolute()
            return self._preparer.prepare(path).contexts[-1].config
        if not path.is_file():
            raise NotFoundError(f"nothing is at {path}; name a config.pbtxt or a model directory")
        parsed = parse_text_with_positions(path.read_bytes(), str(path))
        config = normalise(parsed.config, traits=None, gpus=gpus.gpu_count())
        if listed := problems(config, positions=parsed.positions, file=str(path), complete=False):
            raise ConfigError(listed)
        return config

    def scheduler(self, config: ModelConfig) -> SchedulerFactory:
        """The kind of scheduler of a model. Raises NotFoundError with what is installed and what to install."""
        return self._plugins.scheduler(scheduler_name(config))

    def _problems(self, name: str, folders: Sequence[Location], prepared: dict[str, Prepared]) -> Sequence[str]:
        """Those of one model, which is put among the prepared ones if it can be."""
        if len(folders) > 1:
            return [f"the model is in more than one repository: {', '.join(str(folder.parent) for folder in folders)}"]
        try:
            prepared[name] = self._preparer.prepare(folders[0], name)
        except ConfigError as error:
            return [str(problem) for problem in error.problems]
        except NaiadError as error:
            return [str(error)]
        broken = []
        for part in (lambda each: read_labels(each.config, each.path_inside), self._plugins.warmup):
            try:
                part(prepared[name].contexts[-1])
            except NaiadError as error:
                broken.append(str(error))
        return broken

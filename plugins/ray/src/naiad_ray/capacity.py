"""Facts about models that Ray Serve needs before replicas start: requests in flight, sequences, changed files."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path

from naiad import ModelInspector, PluginRegistry
from naiad.errors import NaiadError
from naiad.options import Settings
from naiad_config import ModelConfig
from naiad_config.stores import RemoteModel, roots_of, scan
from naiad_ray.description import Description, Group
from naiad_ray.settings import options_of

LEAST_ONGOING_REQUESTS = 256
"""The least `max_ongoing_requests`: Ray's default of 5 would cap every batch at 5 requests."""


def configurations(description: Description, group: Group) -> dict[str, ModelConfig | str]:
    """The models of a group by name: the configuration of each, or why it cannot be read here.

    A model of a store is downloaded into the cache of this machine. Raises NaiadError for a repository that cannot be
    read.
    """
    plugins = PluginRegistry.discover()
    settings = _settings(description, group, plugins)
    inspector = ModelInspector(plugins, settings)
    models: dict[str, ModelConfig | str] = {}
    for name, locations in scan(
        roots_of(description.repository_of(group), plugins.repository_scheme, settings)
    ).items():
        if serves(description, group, name):
            try:
                models[name] = inspector.config(locations[0])
            except NaiadError as error:
                models[name] = str(error)
    return models


def serves(description: Description, group: Group, model: str) -> bool:
    """Whether a group serves a model of that name in its repository."""
    if group.models:
        return any(fnmatchcase(model, pattern) for pattern in group.models)
    return description.group_of(model) is group


def most_ongoing_requests(models: Mapping[str, ModelConfig | str]) -> int:
    """How many requests a replica must take at a time so that no batch of its models waits for Ray.

    Twice the largest batches of all instances of the model that takes most, and at least LEAST_ONGOING_REQUESTS.
    """
    configs = (config for config in models.values() if isinstance(config, ModelConfig))
    largest = (2 * max(1, config.max_batch_size) * _instances(config) for config in configs)
    return max([LEAST_ONGOING_REQUESTS, *largest])


def _instances(config: ModelConfig) -> int:
    return max(1, sum(max(1, group.count) * max(1, len(group.gpus)) for group in config.instance_group))


def has_sequences(models: Mapping[str, ModelConfig | str]) -> bool:
    """Whether a model keeps state between requests, so that these must reach one replica."""
    return any(isinstance(config, ModelConfig) and config.sequence_batching for config in models.values())


def digest(description: Description, group: Group) -> str:
    """A digest of the names, sizes and times of all files of a group's repository; a change replaces the replicas.

    Of a store these are the etags of its objects. Raises NaiadError for one that cannot be read.
    """
    plugins = PluginRegistry.discover()
    hashed = blake2b(digest_size=16)
    for root in roots_of(
        description.repository_of(group), plugins.repository_scheme, _settings(description, group, plugins)
    ):
        lines = _lines_of_folder(root) if isinstance(root, Path) else _lines_of_store(root.models())
        for line in lines:
            hashed.update(line.encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()


def _lines_of_folder(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            status = path.stat()
            yield f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n"


def _lines_of_store(models: Mapping[str, RemoteModel]) -> Iterator[str]:
    for name, model in sorted(models.items()):
        yield f"{model.parent}/{name}\0{model.digest}\n"


def _settings(description: Description, group: Group, plugins: PluginRegistry) -> Settings:
    """The options of a group's replicas. Raises InvalidArgumentError for one that a replica cannot have."""
    declared = plugins.options()
    return Settings(declared, options_of(description.options | group.options, declared))

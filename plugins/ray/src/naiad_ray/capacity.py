"""What Ray Serve must know of the models before replicas start: requests in flight, sequences, changes of the files."""

from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path

from naiad import ModelInspector, PluginRegistry
from naiad.errors import NaiadError
from naiad_config import ModelConfig
from naiad_config.repository import scan
from naiad_ray.description import Description, Group

LEAST_ONGOING_REQUESTS = 256
"""The least `max_ongoing_requests`: Ray's default of 5 would cap every batch at 5 requests."""


def configurations(description: Description, group: Group) -> dict[str, ModelConfig | str]:
    """The models of a group by name: the configuration of each, or why it cannot be read here.

    Raises NotFoundError for a repository that cannot be read.
    """
    inspector = ModelInspector(PluginRegistry.discover())
    models: dict[str, ModelConfig | str] = {}
    for name, folders in scan([Path(root) for root in description.repository_of(group)]).items():
        if serves(description, group, name):
            try:
                models[name] = inspector.config(folders[0])
            except NaiadError as error:
                models[name] = str(error)
    return models


def serves(description: Description, group: Group, model: str) -> bool:
    """Whether a group serves a model of that name in its repository."""
    if group.models:
        return any(fnmatchcase(model, pattern) for pattern in group.models)
    return description.group_of(model) is group


def most_ongoing_requests(models: dict[str, ModelConfig | str]) -> int:
    """How many requests a replica must take at a time so that no batch of its models waits for Ray.

    Twice the largest batches of all instances of the model that takes most, and at least LEAST_ONGOING_REQUESTS.
    """
    configs = (config for config in models.values() if isinstance(config, ModelConfig))
    return max((2 * max(1, config.max_batch_size) * _instances(config) for config in configs), default=0) or 1


def _instances(config: ModelConfig) -> int:
    return max(1, sum(max(1, group.count) * max(1, len(group.gpus)) for group in config.instance_group))


def has_sequences(models: dict[str, ModelConfig | str]) -> bool:
    """Whether a model keeps state between requests, so that these must reach one replica."""
    return any(isinstance(config, ModelConfig) and config.sequence_batching for config in models.values())


def digest(repository: tuple[str, ...]) -> str:
    """A digest of the names, sizes and times of all files; a change replaces the replicas."""
    hashed = blake2b(digest_size=16)
    for root in repository:
        for path in sorted(Path(root).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                status = path.stat()
                hashed.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()

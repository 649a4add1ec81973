"""Reading and checking a model's configuration as its author wrote it, with the location of every key."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from naiad._lifecycle.repository import ModelSource, read_regular, served_versions, version_numbers
from naiad.errors import ConfigError, InvalidArgumentError, NotFoundError, Problem
from naiad_config import ModelConfig
from naiad_config.json import read_json
from naiad_config.lexer import Position
from naiad_config.text import read_text
from naiad_config.validation import problems, unexplained, with_positions


@dataclass(frozen=True, slots=True)
class WrittenConfig:
    """A configuration as its author wrote it, its file, and the locations of its keys there.

    `mistakes` are the parts that could not be read, which `config` lacks.
    """

    config: ModelConfig
    file: str
    positions: Mapping[str, Position] = field(default_factory=dict)
    mistakes: Sequence[Problem] = ()


def read_config(source: ModelSource, chosen: str) -> WrittenConfig:
    """The configuration as the user wrote it, by the name `chosen` where there is one; an empty one without a file.

    Raises ConfigError for broken syntax.
    """
    if source.config_override:
        request = "config of the load request"
        sent = read_json(source.config_override, file=request)
        return WrittenConfig(sent.config, request, mistakes=sent.problems)
    named = source.directory / "configs" / f"{chosen}.pbtxt"
    path = named if chosen and named.is_file() else source.directory / "config.pbtxt"
    if not os.path.lexists(path):
        return WrittenConfig(ModelConfig(), str(path))
    try:
        text = read_regular(path)
    except OSError as error:
        raise ConfigError([Problem(f"cannot be read: {error}", file=str(path))]) from error
    parsed = read_text(text, file=str(path))
    return WrittenConfig(parsed.config, str(path), parsed.positions, parsed.problems)


def check(written: WrittenConfig, source: ModelSource, known: Sequence[Problem] = (), complete: bool = True) -> None:
    """Raise ConfigError with the `known` and all other problems of a configuration, in the order of the file."""
    rules = problems(written.config, model_directory=source.directory, complete=complete)
    broken = unexplained((*known, *rules), written.mistakes)
    located = with_positions((*written.mistakes, *broken), written.positions, written.file)
    if located:
        raise ConfigError(sorted(located, key=lambda problem: (problem.line, problem.column)))


@contextmanager
def locate_problems(written: WrittenConfig) -> Iterator[None]:
    """Add the locations of their keys to the problems of a ConfigError."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(with_positions(error.problems, written.positions, written.file)) from error


def versions_of(source: ModelSource, config: ModelConfig) -> list[int]:
    """The versions to serve. Raises InvalidArgumentError when there is none."""
    available = version_numbers(source.directory)
    served = served_versions(available, config.version_policy)
    if not served:
        folders = f"its version folders are {available}" if available else "it has no version folder, such as 1/"
        raise InvalidArgumentError(
            f"at least one version must be available under the version policy of model '{source.name}': {folders}"
        )
    return served


def require_folder(source: ModelSource) -> None:
    """Raise InvalidArgumentError unless the folder can be read by its name."""
    try:
        str(source.directory).encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"the name of the model's folder is not UTF-8: '{source.name}'; rename it") from None
    if not source.directory.is_dir():
        raise InvalidArgumentError(f"model folder '{source.directory}' is a symbolic link that leads to no folder")


def scheduler_name(config: ModelConfig) -> str:
    """The parameter `scheduler` where there is one, else the member of `scheduling_choice`, else the default."""
    parameter = config.parameters.get("scheduler")
    if parameter is not None and parameter.string_value:
        return parameter.string_value
    for choice in ("dynamic_batching", "sequence_batching"):
        if getattr(config, choice) is not None:
            return choice
    return "default"


def backend_settings(texts: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
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


def not_found(name: str) -> NotFoundError:
    """The error for a model to load that no repository has."""
    return NotFoundError(
        f"failed to load '{name}', failed to poll from model repository: there is no folder of that name in it"
    )

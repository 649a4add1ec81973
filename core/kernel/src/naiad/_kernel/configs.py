"""What is written of a model before anybody completes it: its configuration, checked, with the place of every key."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from naiad._kernel.repository import ModelSource, read_regular, served_versions, version_numbers
from naiad.errors import ConfigError, InvalidArgumentError, NotFoundError, Problem
from naiad_config import ModelConfig
from naiad_config.json import read_json
from naiad_config.lexer import Place
from naiad_config.text import read_text
from naiad_config.validation import placed, problems, unexplained


@dataclass(frozen=True, slots=True)
class WrittenConfig:
    """A configuration as its author wrote it, the file it stands in, and where its keys stand there.

    `mistakes` are what could not be read, and is missing in `config`.
    """

    config: ModelConfig
    file: str
    places: Mapping[str, Place] = field(default_factory=dict)
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
    return WrittenConfig(parsed.config, str(path), parsed.places, parsed.problems)


def check(written: WrittenConfig, source: ModelSource, found: Sequence[Problem] = (), complete: bool = True) -> None:
    """Raise ConfigError with `found` and all else that is wrong in a configuration, in the order of the file."""
    rules = problems(written.config, model_directory=source.directory, complete=complete)
    broken = unexplained((*found, *rules), written.mistakes)
    all_found = placed((*written.mistakes, *broken), written.places, written.file)
    if all_found:
        raise ConfigError(sorted(all_found, key=lambda problem: (problem.line, problem.column)))


@contextmanager
def in_place(written: WrittenConfig) -> Iterator[None]:
    """Give the problems of a ConfigError the places of their keys."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(placed(error.problems, written.places, written.file)) from error


def versions_of(source: ModelSource, config: ModelConfig) -> list[int]:
    """The versions to serve. Raises InvalidArgumentError when there is none."""
    available = version_numbers(source.directory)
    served = served_versions(available, config.version_policy)
    if not served:
        found = f"its version folders are {available}" if available else "it has no version folder, such as 1/"
        raise InvalidArgumentError(
            f"at least one version must be available under the version policy of model '{source.name}': {found}"
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


def wanted_scheduler(config: ModelConfig) -> str:
    """The parameter `scheduler` where it is given, else the member of `scheduling_choice`, else the default."""
    asked = config.parameters.get("scheduler")
    if asked is not None and asked.string_value:
        return asked.string_value
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

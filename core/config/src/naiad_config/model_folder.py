"""Reading the folder of a model: its agents, its configuration as its author wrote it, and its versions to serve."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from naiad_config.errors import ConfigError, InvalidArgumentError, NaiadError, Problem
from naiad_config.json import read_json
from naiad_config.lexer import Position
from naiad_config.model import ModelConfig, RepositoryAgent
from naiad_config.parsed import Parsed
from naiad_config.repository import is_folder, read_regular, served_versions, version_numbers
from naiad_config.text import read_text
from naiad_config.validation import misnamed, problems, unexplained, with_positions

_OVERRIDE = "config of the load request"
_LIKE_A_VERSION = re.compile(r"(?:v|ver|version)?[-_. ]?0*([1-9][0-9]*)", re.IGNORECASE)
_AGENTS = b"model_repository_agents"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's folder, its configuration as written but with the folder's name, and the `versions` to serve.

    `file` says in messages where the configuration is, or that the folder has none, and `positions` where its keys are.
    """

    directory: Path
    config: ModelConfig
    file: str
    positions: Mapping[str, Position] = field(default_factory=dict)
    versions: tuple[int, ...] = ()

    def check(self, config: ModelConfig) -> None:
        """Raise ConfigError with all problems of the completed configuration, in the order of the file."""
        _refuse(problems(config, model_directory=self.directory), self)

    @contextmanager
    def locate_problems(self) -> Iterator[None]:
        """Add the positions of their keys to the problems of a ConfigError, and the versions to any NaiadError."""
        try:
            yield
        except ConfigError as error:
            located = ConfigError(with_positions(error.problems, self.positions, self.file))
            located.versions = self.versions
            raise located from error
        except NaiadError as error:
            error.versions = self.versions
            raise


def read_model(directory: Path, *, name: str = "", override: str = "", variant: str = "") -> ModelFolder:
    """The folder of a model, whose `name` is that of the folder unless it is another.

    The configuration is the JSON text `override` where there is one, else `configs/<variant>.pbtxt` where that exists,
    else `config.pbtxt`, else empty. Raises ConfigError with every problem of it, but for what a backend may still
    complete, and InvalidArgumentError for a folder that cannot be read or has no version to serve.
    """
    name = name or directory.name
    _require_folder(directory, name)
    file, parsed = _parsed(directory, override, variant)
    model = ModelFolder(directory, replace(parsed.config, name=name), file, parsed.positions)
    rules = problems(model.config, model_directory=directory, complete=False)
    broken = unexplained((*misnamed(parsed.config, name), *rules), parsed.problems)
    _refuse((*parsed.problems, *broken), model)
    return replace(model, versions=_versions(model))


def repository_agents(directory: Path, *, override: str = "", variant: str = "") -> tuple[RepositoryAgent, ...]:
    """The agents that guard the folder of a model, in their order.

    Those of `config.pbtxt` are among them and come first, whatever replaces that file: `read_model` says what does.
    Raises ConfigError when a configuration that names agents cannot be read.
    """
    paths = (directory / "config.pbtxt", *([directory / "configs" / f"{variant}.pbtxt"] if variant else ()))
    parsed = [read_text(text, file=str(path)) for path in paths if _AGENTS in (text := _content(path))]
    if override:
        parsed.append(read_json(override, file=_OVERRIDE))
    agents: list[RepositoryAgent] = []
    for each in parsed:
        section = each.sound().config.model_repository_agents
        agents += [agent for agent in (section.agents if section else ()) if agent not in agents]
    return tuple(agents)


def _content(path: Path) -> bytes:
    """The bytes of a configuration, none where there is no file. Raises ConfigError when it cannot be read."""
    if not os.path.lexists(path):
        return b""
    try:
        return read_regular(path)
    except OSError as error:
        raise ConfigError([Problem(f"cannot be read: {error}", file=str(path))]) from error


def _refuse(problems_found: Sequence[Problem], model: ModelFolder) -> None:
    located = with_positions(problems_found, model.positions, model.file)
    if located:
        raise ConfigError(sorted(located, key=lambda problem: (problem.line, problem.column)))


def _parsed(directory: Path, override: str, variant: str) -> tuple[str, Parsed]:
    """The configuration and what it is called. Raises ConfigError for broken syntax."""
    if override:
        return _OVERRIDE, read_json(override, file=_OVERRIDE)
    chosen = directory / "configs" / f"{variant}.pbtxt"
    path = chosen if variant and chosen.is_file() else directory / "config.pbtxt"
    if not os.path.lexists(path):
        return f"{directory}, which has no {path.name}", Parsed(ModelConfig())
    return str(path), read_text(_content(path), file=str(path))


def _versions(model: ModelFolder) -> tuple[int, ...]:
    available = version_numbers(model.directory)
    served = served_versions(available, model.config.version_policy)
    if not served:
        folders = f"its version folders are {available}" if available else f"it has {_no_versions(model.directory)}"
        raise InvalidArgumentError(
            f"at least one version must be available under the version policy of model '{model.config.name}': {folders}"
        )
    return tuple(served)


def _no_versions(directory: Path) -> str:
    """A sentence on a folder without version folders, with the file, misnamed folder or model in place of one.

    Raises InvalidArgumentError for a folder that cannot be read.
    """
    try:
        paths = sorted(directory.iterdir())
        folders = [path for path in paths if path.is_dir()]
    except OSError as error:
        raise InvalidArgumentError(f"model folder '{directory}' cannot be read: {error.strerror}") from error
    advice = [
        f"; rename '{path.name}' to {number[1]}" for path in folders if (number := _LIKE_A_VERSION.fullmatch(path.name))
    ]
    advice += [
        f"; move '{path.name}' to 1/{path.name}, and what belongs to it" for path in paths if path.stem == "model"
    ]
    advice += [
        f"; it has the model '{path.name}': serve '{directory}' as the model repository"
        for path in paths
        if version_numbers(path)
    ]
    return f"no version folder, such as 1/{advice[0] if advice else ''}"


def _require_folder(directory: Path, name: str) -> None:
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"the name of the model's folder is not UTF-8: '{name}'; rename it") from None
    if not is_folder(directory):
        raise InvalidArgumentError(f"model folder '{directory}' is not a folder, or a symbolic link that leads to none")

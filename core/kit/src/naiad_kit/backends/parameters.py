"""Typed parameters of a model and settings of its backend: parsed values, and a problem for each invalid key."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from naiad.errors import ConfigError, Problem
from naiad_config import ModelConfig
from naiad_config.mistakes import nearest

if TYPE_CHECKING:
    from naiad.backend import ModelContext

_T = TypeVar("_T")
_D = TypeVar("_D")

_BATCH_SIZE = "default-max-batch-size"
_OF_EVERY_BACKEND = ("auto-complete-config", "backend-directory", _BATCH_SIZE, "min-compute-capability")
_LIKE = 0.8
"""How similar a name must be to count as a typing error for a known one."""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The parameters that a backend reads in configurations, and its settings of `--backend-config`.

    Parameters have several readers: those that are unknown here may be for a scheduler, for tools, or for Triton, which
    ignores them. So one rule holds for all backends. A name that is one typing mistake from a known one (a
    letter too many, too few, another one, or two in each other's place) is an error. One that is merely like a known
    one, in other case maybe, is a warning with that one; and so is one in capitals that is like none, where all names
    of the framework are in capitals. All others are left alone. Settings are the backend's alone: whatever it does not
    know is a warning at least.

    `framework` is what messages call it, `old` are names of former times that are read as well, and what begins with
    one of `prefixes` is handed on as it is.
    """

    framework: str
    parameters: tuple[str, ...]
    settings: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def mistakes(self, config: ModelConfig, settings: Mapping[str, str]) -> Iterator[Problem]:
        """The names in a configuration and in the settings that are one slip from a known one."""
        for key, meant in self._slips(self._foreign(config), (*self.parameters, *self.old)):
            message = f"{self.framework} has no parameter '{key}'"
            yield Problem(message, f"parameters[{key}]", hint=f"did you mean '{meant}'?")
        for key, meant in self._slips(self._foreign_settings(settings), self.settings):
            message = f"the backend for {self.framework} has no setting '{key}'"
            yield Problem(message, "backend-config", hint=f"did you mean '{meant}'?")

    def warn_of_unread(self, context: "ModelContext") -> None:
        """Log the unknown names that are similar to known ones; for `Backend.load`."""
        in_capitals = all(map(str.isupper, self.parameters))
        for key in self._foreign(context.config):
            near = _like(key, (*self.parameters, *self.old))
            if near or (in_capitals and key.isupper()):
                context.logger.warning(
                    "%s has no parameter '%s'; %s", self.framework, key, _hint(near, self.parameters)
                )
        known = (*self.settings, _BATCH_SIZE)
        for key in self._foreign_settings(context.settings):
            message = "the backend for %s has no setting '%s'; %s"
            context.logger.warning(message, self.framework, key, _hint(_like(key, known), known))

    def _foreign(self, config: ModelConfig) -> list[str]:
        known = {*self.parameters, *self.old}
        return [key for key in config.parameters if key not in known and not key.startswith(self.prefixes)]

    def _foreign_settings(self, settings: Mapping[str, str]) -> list[str]:
        return [key for key in settings if key not in self.settings and key not in _OF_EVERY_BACKEND]

    @staticmethod
    def _slips(keys: list[str], known: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for key in keys:
            meant = next((name for name in known if _is_one_slip(key, name)), "")
            if meant:
                yield key, meant


class ParameterReader:
    """Reads one configuration, and the `--backend-config` values of its backend, and gathers what is wrong with them.

    `old_names` are keys of former times by what they are called today. `config` is what is read; `texts` are the
    values by today's keys; `problems` may be added to.
    """

    def __init__(
        self,
        config: ModelConfig,
        settings: Mapping[str, str] | None = None,
        old_names: Mapping[str, str] | None = None,
    ) -> None:
        renamed = old_names or {}
        self.config = config
        self._written = {renamed.get(key, key): key for key in config.parameters}
        self._settings = settings or {}
        self.texts = {key: config.parameters[written].string_value for key, written in self._written.items()}
        self.problems: list[Problem] = []

    def read(self, key: str, parse: Callable[[str], _T], default: _D) -> _T | _D:
        """The parameter of that key, the default where it is missing or invalid.

        `parse` raises ValueError with what a value must be.
        """
        written = self._written.get(key, key)
        return self.parsed(written, self.texts.get(key, ""), parse, default, f"parameters[{written}]")

    def setting(self, key: str, parse: Callable[[str], _T], default: _D) -> _T | _D:
        """The backend's setting of that key, likewise."""
        return self.parsed(key, self._settings.get(key, ""), parse, default, "backend-config")

    def parsed(self, key: str, text: str, parse: Callable[[str], _T], default: _D, path: str) -> _T | _D:
        """A value that stands elsewhere, likewise; `path` appears in the error."""
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            self.problems.append(Problem(f"'{key}' cannot be '{text}': {error}", path))
            return default

    def refuse_misspelt(self, known: KnownNames) -> None:
        """Note the names that are one slip from a known one."""
        self.problems += known.mistakes(self.config, self._settings)

    def finish(self) -> None:
        """Raise ConfigError with all that is wrong."""
        if self.problems:
            raise ConfigError(self.problems)


def _is_one_slip(written: str, meant: str) -> bool:
    """Whether one letter was added, left out or changed, or two neighbours were swapped."""
    start = 0
    while start < min(len(written), len(meant)) and written[start] == meant[start]:
        start += 1
    rest, expected = written[start:], meant[start:]
    while rest and expected and rest[-1] == expected[-1]:
        rest, expected = rest[:-1], expected[:-1]
    if len(rest) == len(expected) == 2:
        return rest == expected[::-1]
    return written != meant and max(len(rest), len(expected)) == 1


def _like(key: str, known: Iterable[str]) -> str:
    """The known name that looks most like this one, whatever the case and the dashes; "" for none."""
    folded = {_folded(name): name for name in known}
    return folded.get(nearest(_folded(key), folded, _LIKE), "")


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")


def _hint(near: str, known: Iterable[str]) -> str:
    return f"did you mean '{near}'?" if near else f"known are {', '.join(known)}"


def count(text: str, least: int = 0) -> int:
    """A whole number from `least` up. Raises ValueError."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError("it must be a whole number") from None
    if number < least:
        raise ValueError("it must not be negative" if least == 0 else f"it must be at least {least}")
    return number


def positive_count(text: str) -> int:
    """A whole number from 1 up. Raises ValueError."""
    return count(text, 1)


def default_batch_size(settings: Mapping[str, str]) -> int:
    """What `max_batch_size` becomes for a model that can be batched and does not say: 4 unless set otherwise.

    Raises ConfigError.
    """
    reader = ParameterReader(ModelConfig(), settings)
    size = reader.setting(_BATCH_SIZE, count, 4)
    reader.finish()
    return size

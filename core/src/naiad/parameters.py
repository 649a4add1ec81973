"""Reading the parameters of a model and the settings of its backend: every value parsed, every mistake with its key."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from naiad.config import ModelConfig
from naiad.config.mistakes import nearest
from naiad.errors import ConfigError, Problem

_T = TypeVar("_T")
_D = TypeVar("_D")

_BATCH_SIZE = "default-max-batch-size"


class ParameterReader:
    """Reads one configuration, and the `--backend-config` values of its backend, and gathers what is wrong with them.

    `old_names` are keys of former times by what they are called today. `texts` are the values by today's keys;
    `problems` may be added to.
    """

    def __init__(
        self,
        config: ModelConfig,
        settings: Mapping[str, str] | None = None,
        old_names: Mapping[str, str] | None = None,
    ) -> None:
        renamed = old_names or {}
        self._written = {renamed.get(key, key): key for key in config.parameters}
        self._settings = settings or {}
        self.texts = {key: config.parameters[written].string_value for key, written in self._written.items()}
        self.problems: list[Problem] = []

    def read(self, key: str, parse: Callable[[str], _T], default: _D) -> _T | _D:
        """The parameter of that key, the default where it is not given or makes no sense.

        `parse` raises ValueError with what a value must be.
        """
        written = self._written.get(key, key)
        return self.parsed(written, self.texts.get(key, ""), parse, default, f"parameters[{written}]")

    def setting(self, key: str, parse: Callable[[str], _T], default: _D) -> _T | _D:
        """The backend's setting of that key, likewise."""
        return self.parsed(key, self._settings.get(key, ""), parse, default, "backend-config")

    def parsed(self, key: str, text: str, parse: Callable[[str], _T], default: _D, path: str) -> _T | _D:
        """A value that stands elsewhere, likewise; `path` is told with a mistake."""
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            self.problems.append(Problem(f"'{key}' cannot be '{text}': {error}", path))
            return default

    def refuse_unknown(self, framework: str, known: Sequence[str], old: Sequence[str] = ()) -> None:
        """Take keys in capitals, which are the framework's, for mistakes where they are not `known`."""
        for key in self.texts:
            if key.isupper() and key not in known:
                near = nearest(key, (*known, *old), 0.6)
                hint = f"did you mean '{near}'?" if near else f"known are {', '.join(known)}"
                self.problems.append(Problem(f"{framework} has no parameter '{key}'", f"parameters[{key}]", hint=hint))

    def finish(self) -> None:
        """Raise ConfigError with all that is wrong."""
        if self.problems:
            raise ConfigError(self.problems)


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

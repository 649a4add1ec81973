"""Server options, which the kernel and plugins declare, and their values: `--http-port`, `settings["http-port"]`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from naiad.errors import InvalidArgumentError

_T = TypeVar("_T")


def boolean(text: str, allowed: str = "true, false, 1, 0, yes, no, on, off") -> bool:
    """true/false, 1/0, yes/no, on/off in any case. Raises ValueError otherwise."""
    if (lowered := text.strip().lower()) in ("true", "1", "yes", "on"):
        return True
    if lowered in ("false", "0", "no", "off"):
        return False
    raise ValueError(f"'{text}' is none of {allowed}")


def positive(text: str) -> int:
    """A whole number from 1 up. Raises ValueError otherwise."""
    if (value := int(text)) < 1:
        raise ValueError(f"'{text}' must be greater than 0")
    return value


def port(text: str) -> int:
    """A port number; 0 lets the system choose. Raises ValueError for another number."""
    if not 0 <= (value := int(text)) <= 65535:
        raise ValueError(f"'{text}' is not a port number; they go from 0 (any free one) to 65535")
    return value


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name without dashes, default, one-sentence help, and how its text becomes a value.

    `type` raises ValueError for a bad text. A `repeatable` option's value is a tuple of such values.
    """

    name: str
    default: Any
    help: str
    type: Callable[[str], Any] = str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    repeatable: bool = False


LOG_FORMATS = ("default", "ISO8601", "json")
"""The values of `--log-format`."""


def _verbosity(text: str) -> int:
    """A verbosity level; the words of a switch count as 0 and 1."""
    return int(text) if text.strip().isdigit() else int(boolean(text, "the levels 0, 1, 2, true, false"))


LOG_OPTIONS = (
    Option("log-verbose", 0, "1: refused requests and the start of loads; 2: each request", _verbosity, "LEVEL"),
    Option("log-info", True, "log what happens", boolean),
    Option("log-warning", True, "log what may go wrong", boolean),
    Option("log-error", True, "log what went wrong", boolean),
    Option("log-format", "default", "the form of log lines", choices=LOG_FORMATS),
    Option("log-file", "", "append to this file instead of the terminal", metavar="FILE"),
)
"""The `log-…` options of a server."""


class Settings(Mapping[str, Any]):
    """The values of all declared options, defaults included."""

    def __init__(self, options: Sequence[Option], values: Mapping[str, Any]) -> None:
        self._values = {option.name: option.default for option in options} | dict(values)
        choices = {option.name: option.choices for option in options}
        for name, value in values.items():
            if name not in choices:
                raise InvalidArgumentError(f"unknown option '{name}'; the options are {', '.join(sorted(choices))}")
            if (valid := choices[name]) and value not in valid:
                raise InvalidArgumentError(f"option '{name}' must be one of {', '.join(valid)}, not {value!r}")

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def value(self, name: str, kind: type[_T]) -> _T:
        """The option's value, which must be a `kind`. Raises InvalidArgumentError when it is not."""
        value = self._values[name]
        if not isinstance(value, kind):
            raise InvalidArgumentError(f"option '{name}' must be {kind.__name__}, not {value!r}")
        return value

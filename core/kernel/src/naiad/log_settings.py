"""The log settings of a server: their options, and the control by which the logging extension changes them."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.options import Option, boolean

VERBOSE_2 = 5
"""The level of what `--log-verbose=2` adds to the debug lines of `--log-verbose=1`."""

LogSettings = Mapping[str, bool | int | str]
"""The settings of the log by the names of the logging extension."""

LOG_FORMATS = ("default", "ISO8601", "json")
"""The values of `--log-format`."""


def _verbosity(text: str) -> int:
    """A verbosity level; the words of a switch count as 0 and 1."""
    return int(text) if text.strip().isdigit() else int(boolean(text))


LOG_OPTIONS = (
    Option("log-verbose", 0, "verbosity: 0, 1 or 2", _verbosity, "LEVEL"),
    Option("log-info", True, "log what happens", boolean),
    Option("log-warning", True, "log what may go wrong", boolean),
    Option("log-error", True, "log what went wrong", boolean),
    Option("log-format", "default", "how a line looks", choices=LOG_FORMATS),
    Option("log-file", "", "append to this file instead of the terminal", metavar="FILE"),
)
"""The `log-…` options of a server."""

_SWITCHES = {"I": "log-info", "W": "log-warning", "E": "log-error"}
_LEVELS = {"I": logging.INFO, "W": logging.WARNING, "E": logging.ERROR}
_OPTIONS = {
    "log_file": "log-file",
    "log_info": "log-info",
    "log_warning": "log-warning",
    "log_error": "log-error",
    "log_verbose_level": "log-verbose",
    "log_format": "log-format",
}
_LARGEST = 2**31 - 1


class LogControl:
    """Holds the `log-…` options and applies what changes them; a call changes all that it names, or nothing.

    `apply` gets the options by name. They are not applied before they change: who made the log did that.
    """

    def __init__(self, options: Mapping[str, Any], apply: Callable[[Mapping[str, Any]], None]) -> None:
        self._options: Mapping[str, Any] = {name: options[name] for name in _OPTIONS.values()}
        self._apply = apply

    def settings(self) -> LogSettings:
        """The settings as they stand, by the names of the extension."""
        return {key: self._options[name] for key, name in _OPTIONS.items()}

    def update(self, changes: Mapping[str, Any]) -> LogSettings:
        """Change settings, and give all as they stand then.

        Raises InvalidArgumentError for unknown names and wrong values, UnsupportedError for the file.
        """
        checked = [_checked(key, value) for key, value in changes.items()]
        self._options = {**self._options, **{_OPTIONS[key]: value for key, value in checked}}
        self._apply(self._options)
        return self.settings()


def embedded_log_control(settings: Mapping[str, Any]) -> LogControl:
    """The settings of a server in somebody else's program, whose log is that program's own.

    A change sets the level of the logger `naiad`, below which nothing is logged; lines look as the program likes.
    """
    return LogControl(settings, lambda options: logging.getLogger("naiad").setLevel(_lowest(options)))


def threshold(verbosity: int) -> int:
    """The level from which on a `--log-verbose` of that lets lines through."""
    if verbosity >= 2:
        return VERBOSE_2
    return logging.DEBUG if verbosity else logging.INFO


def switched_off(options: Mapping[str, Any]) -> frozenset[str]:
    """The letters of the levels that are switched off: `I`, `W` and `E`."""
    return frozenset(letter for letter, name in _SWITCHES.items() if not options[name])


def _lowest(options: Mapping[str, Any]) -> int:
    """The lowest level that is switched on."""
    if options["log-verbose"]:
        return threshold(options["log-verbose"])
    off = switched_off(options)
    return next((level for letter, level in _LEVELS.items() if letter not in off), logging.CRITICAL)


def _checked(key: str, value: Any) -> tuple[str, bool | int | str]:
    if key == "log_file":
        raise UnsupportedError(
            "log file location can not be updated through network protocol; start the server with --log-file"
        )
    if key in ("log_info", "log_warning", "log_error"):
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"expect boolean for '{key}', got {_shown(value)}")
        return key, value
    if key == "log_verbose_level":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
            raise InvalidArgumentError(f"expect int32 for '{key}', from 0 up, got {_shown(value)}")
        return key, value
    if key == "log_format":
        if not isinstance(value, str):
            raise InvalidArgumentError(f"expect string for '{key}', got {_shown(value)}")
        if value not in LOG_FORMATS:
            raise InvalidArgumentError(
                f"invalid argument for {key}, got: {value[:80]}; the formats are {', '.join(LOG_FORMATS)}"
            )
        return key, value
    raise InvalidArgumentError(f"unknown log setting '{key[:80]}'; there are {', '.join(_OPTIONS)}")


def _shown(value: Any) -> str:
    return repr(value)[:80]

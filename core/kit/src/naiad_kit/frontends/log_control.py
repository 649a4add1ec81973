"""The control that reads and changes the log options of a server while it runs."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from naiad.options import LOG_OPTIONS

VERBOSE_2 = 5
"""The level of what `--log-verbose=2` adds to the debug lines of `--log-verbose=1`."""

_SWITCHES = {"I": "log-info", "W": "log-warning", "E": "log-error"}
_LEVELS = {"I": logging.INFO, "W": logging.WARNING, "E": logging.ERROR}


class LogControl:
    """The values of the `log-…` options by their names, and what applies a change of them to the log.

    Frontends find that of a server with `server.service(LogControl)`.
    """

    name: str = "logging"

    def __init__(self, options: Mapping[str, Any], apply: Callable[[Mapping[str, Any]], None]) -> None:
        self.options: Mapping[str, Any] = {option.name: options[option.name] for option in LOG_OPTIONS}
        self._apply = apply
        self._followers: list[Callable[[Mapping[str, Any]], object]] = []

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "LogControl":
        """The control for a server within a program, which formats the log: a change sets the level of `naiad`."""
        return cls(settings, lambda options: logging.getLogger("naiad").setLevel(_lowest(options)))

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set options, whose values are valid, and apply all."""
        self.options = {**self.options, **changes}
        self._apply(self.options)
        for follow in self._followers:
            follow(self.options)

    def follow(self, changed: Callable[[Mapping[str, Any]], object]) -> None:
        """Call `changed` with the options now, and whenever they have changed."""
        self._followers.append(changed)
        changed(self.options)


def threshold(verbosity: int) -> int:
    """The lowest level that is logged with that `--log-verbose`."""
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

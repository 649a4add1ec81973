"""The log settings of a running server, as the logging extension reads and changes them."""

from collections.abc import Callable, Mapping
from typing import Any

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.server import LogSettings

LOG_FORMATS = ("default", "ISO8601", "json")


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

    `apply` gets the options by name. They are not applied before they change: whoever made the log did that.
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


def _checked(key: str, value: Any) -> tuple[str, bool | int | str]:
    if key == "log_file":
        raise UnsupportedError(
            "log file location can not be updated through network protocol; start the server with --log-file"
        )
    if key in ("log_info", "log_warning", "log_error"):
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"expect boolean for '{key}', got {_told(value)}")
        return key, value
    if key == "log_verbose_level":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
            raise InvalidArgumentError(f"expect int32 for '{key}', from 0 up, got {_told(value)}")
        return key, value
    if key == "log_format":
        if not isinstance(value, str):
            raise InvalidArgumentError(f"expect string for '{key}', got {_told(value)}")
        if value not in LOG_FORMATS:
            raise InvalidArgumentError(
                f"invalid argument for {key}, got: {value[:80]}; the formats are {', '.join(LOG_FORMATS)}"
            )
        return key, value
    raise InvalidArgumentError(f"unknown log setting '{key[:80]}'; there are {', '.join(_OPTIONS)}")


def _told(value: Any) -> str:
    return repr(value)[:80]

"""Log settings of the logging extension, mapped to and from the server's log options."""

from collections.abc import Mapping
from typing import Any

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.options import LOG_FORMATS
from naiad_kit.frontends.log_control import LogControl

LogSettings = Mapping[str, bool | int | str]
"""The settings by the names of the extension."""

_OPTIONS = {
    "log_file": "log-file",
    "log_info": "log-info",
    "log_warning": "log-warning",
    "log_error": "log-error",
    "log_verbose_level": "log-verbose",
    "log_format": "log-format",
}
_LARGEST = 2**31 - 1


def log_settings(control: LogControl) -> LogSettings:
    """The settings now."""
    return {key: control.options[name] for key, name in _OPTIONS.items()}


def update_log_settings(control: LogControl, changes: Mapping[str, Any]) -> LogSettings:
    """Change all of these settings, or none; None leaves a setting as it is. Returns the settings then.

    Raises InvalidArgumentError for unknown names and invalid values, UnsupportedError for the file.
    """
    checked = [_checked(key, value) for key, value in changes.items() if value is not None or key not in _OPTIONS]
    control.change({_OPTIONS[key]: value for key, value in checked})
    return log_settings(control)


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

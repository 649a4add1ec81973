"""The log settings of the logging extension."""

from collections.abc import Mapping
from typing import Any

import pytest

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.options import LOG_OPTIONS
from naiad_kit.frontends.log_control import LogControl
from naiad_kit.frontends.log_settings import log_settings, update_log_settings

OPTIONS: Mapping[str, Any] = {option.name: option.default for option in LOG_OPTIONS}
SETTINGS = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}


def test_settings_are_the_options() -> None:
    control = LogControl({**OPTIONS, "log-file": "x.log", "log-verbose": 2}, lambda options: None)

    assert log_settings(control) == {**SETTINGS, "log_file": "x.log", "log_verbose_level": 2}


def test_a_change_is_applied_at_once() -> None:
    applied: list[Mapping[str, Any]] = []
    control = LogControl(OPTIONS, applied.append)

    settings = update_log_settings(control, {"log_warning": False, "log_format": "json"})

    assert applied == [{**OPTIONS, "log-warning": False, "log-format": "json"}]
    assert settings == log_settings(control) == {**SETTINGS, "log_warning": False, "log_format": "json"}


def test_a_setting_that_is_none_stays_as_it_is() -> None:
    control = LogControl(OPTIONS, lambda options: None)

    settings = update_log_settings(control, {"log_info": False, "log_error": None, "log_file": None})

    assert settings == {**SETTINGS, "log_info": False}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"log_info": "true"}, "expect boolean for 'log_info', got 'true'"),
        ({"log_warning": 0}, "expect boolean for 'log_warning', got 0"),
        ({"log_files": None}, "unknown log setting 'log_files'"),
        ({"log_verbose_level": True}, "expect int32 for 'log_verbose_level'"),
        ({"log_verbose_level": -1}, "expect int32 for 'log_verbose_level'"),
        ({"log_verbose_level": 2**31}, "expect int32 for 'log_verbose_level'"),
        ({"log_format": 1}, "expect string for 'log_format'"),
        ({"log_format": "foo"}, "invalid argument for log_format, got: foo; the formats are default, ISO8601, json"),
        ({"log_files": ""}, "unknown log setting 'log_files'; there are log_file, log_info"),
    ],
)
def test_nothing_changes_when_anything_is_wrong(changes: dict[str, Any], complaint: str) -> None:
    applied: list[Mapping[str, Any]] = []
    control = LogControl(OPTIONS, applied.append)

    with pytest.raises(InvalidArgumentError) as error:
        update_log_settings(control, {"log_info": False, **changes})

    assert complaint in str(error.value)
    assert (applied, log_settings(control)) == ([], SETTINGS)


def test_the_file_is_the_command_line_s() -> None:
    with pytest.raises(UnsupportedError, match="log file location can not be updated through network protocol"):
        update_log_settings(LogControl(OPTIONS, lambda options: None), {"log_file": "x.log"})

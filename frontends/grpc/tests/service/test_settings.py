"""The types of log settings in messages."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_grpc.service.settings import SettingsRpcs


def test_log_settings_are_read_with_their_types(ask, server):
    settings = ask(SettingsRpcs, "LogSettings").settings

    assert {name: setting.WhichOneof("parameter_choice") for name, setting in settings.items()} == {
        "log_file": "string_param",
        "log_info": "bool_param",
        "log_warning": "bool_param",
        "log_error": "bool_param",
        "log_verbose_level": "uint32_param",
        "log_format": "string_param",
    }
    assert (settings["log_info"].bool_param, settings["log_verbose_level"].uint32_param) == (True, 2)
    assert server.log_changes == []


def test_log_settings_are_changed_with_their_types(ask, server):
    settings = {"log_info": {"bool_param": False}, "log_verbose_level": {"uint32_param": 1}}

    ask(SettingsRpcs, "LogSettings", settings=settings)

    (options,) = server.log_changes
    assert (options["log-info"], options["log-verbose"], options["log-error"]) == (False, 1, True)


def test_a_log_setting_without_a_value_is_refused(ask):
    with pytest.raises(InvalidArgumentError, match="log setting 'log_info' has no value"):
        ask(SettingsRpcs, "LogSettings", settings={"log_info": {}})

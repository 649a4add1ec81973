"""Trace and log settings, from messages to calls of the server and back."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_grpc.service.settings import SettingsRpcs


def values(response):
    return {name: list(setting.value) for name, setting in response.settings.items()}


def test_trace_settings_are_read_without_a_change(ask, server):
    settings = values(ask(SettingsRpcs, "TraceSetting"))

    assert settings == {"trace_level": ["TIMESTAMPS", "TENSORS"], "trace_rate": ["1000"]}
    assert server.tracing.changes == []


def test_trace_settings_are_changed_for_one_model_and_cleared_by_an_empty_value(ask, server):
    settings = {"trace_level": {"value": ["OFF"]}, "trace_rate": {}}

    ask(SettingsRpcs, "TraceSetting", model_name="m", settings=settings)

    assert server.tracing.changes == [({"trace_level": ["OFF"], "trace_rate": []}, "m")]


def test_log_settings_are_read_with_their_types(ask, server):
    settings = ask(SettingsRpcs, "LogSettings").settings

    assert {name: setting.WhichOneof("parameter_choice") for name, setting in settings.items()} == {
        "log_info": "bool_param",
        "log_verbose_level": "uint32_param",
        "log_format": "string_param",
    }
    assert (settings["log_info"].bool_param, settings["log_verbose_level"].uint32_param) == (True, 2)
    assert server.logging.changes == []


def test_log_settings_are_changed_with_their_types(ask, server):
    settings = {"log_info": {"bool_param": False}, "log_verbose_level": {"uint32_param": 1}}

    ask(SettingsRpcs, "LogSettings", settings=settings)

    assert server.logging.changes == [({"log_info": False, "log_verbose_level": 1},)]


def test_a_log_setting_without_a_value_is_refused(ask):
    with pytest.raises(InvalidArgumentError, match="log setting 'log_info' has no value"):
        ask(SettingsRpcs, "LogSettings", settings={"log_info": {}})

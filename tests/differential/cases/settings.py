"""Trace and log settings on both protocols."""

from typing import Any

from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb

from ..answers import Case
from ..grpc_asking import grpc_case
from ..http_asking import Body, http_case

_TRACES: dict[str, Body] = {
    "rate": {"trace_rate": "5"},
    "rate_number": {"trace_rate": 5},
    "rate_word": {"trace_rate": "x"},
    "rate_negative": {"trace_rate": "-1"},
    "rate_zero": {"trace_rate": "0"},
    "rate_huge": {"trace_rate": "99999999999999999999"},
    "count": {"trace_count": "10"},
    "count_word": {"trace_count": "x"},
    "count_minus_1": {"trace_count": "-1"},
    "count_minus_2": {"trace_count": "-2"},
    "frequency": {"log_frequency": "3"},
    "frequency_word": {"log_frequency": "x"},
    "level": {"trace_level": ["TIMESTAMPS"]},
    "levels": {"trace_level": ["TIMESTAMPS", "TENSORS"]},
    "level_text": {"trace_level": "TIMESTAMPS"},
    "level_unknown": {"trace_level": ["SOMETHING"]},
    "level_off": {"trace_level": ["OFF"]},
    "level_off_and_more": {"trace_level": ["OFF", "TIMESTAMPS"]},
    "level_empty": {"trace_level": []},
    "level_null": {"trace_level": None},
    "file": {"trace_file": "/tmp/x"},
    "mode": {"trace_mode": "opentelemetry"},
    "unknown": {"x": "1"},
    "good_and_bad": {"trace_rate": "9", "trace_count": "x"},
    "rate_null": {"trace_rate": None},
    "everything_null": {"trace_rate": None, "trace_count": None, "log_frequency": None, "trace_level": None},
    "nothing": {},
    "no_body": None,
    "no_json": b"{",
    "list": [],
}
_LOGS: dict[str, Body] = {
    "info_off": {"log_info": False},
    "info_on": {"log_info": True},
    "warning_off": {"log_warning": False},
    "error_off": {"log_error": False},
    "info_number": {"log_info": 1},
    "info_text": {"log_info": "true"},
    "verbose": {"log_verbose_level": 1},
    "verbose_off": {"log_verbose_level": 0},
    "verbose_negative": {"log_verbose_level": -1},
    "verbose_text": {"log_verbose_level": "1"},
    "format": {"log_format": "ISO8601"},
    "format_default": {"log_format": "default"},
    "format_unknown": {"log_format": "something"},
    "format_number": {"log_format": 5},
    "file": {"log_file": "/tmp/x"},
    "nulls": {"log_file": None, "log_info": None, "log_verbose_level": None, "log_format": None},
    "unknown": {"x": True},
    "good_and_bad": {"log_verbose_level": 2, "log_format": "something"},
    "all_on": {"log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0},
    "nothing": {},
    "no_body": None,
    "no_json": b"{",
    "list": [],
}


def cases() -> list[Case]:
    """Every case of this page; those over gRPC start from what those over HTTP leave."""
    return [*_http_traces(), *_http_logs(), *_grpc_traces(), *_grpc_logs()]


def _http_traces() -> list[Case]:
    cases = [
        http_case("trace/get", "GET", "/v2/trace/setting"),
        http_case("trace/get_model", "GET", "/v2/models/add_sub/trace/setting"),
        http_case("trace/get_unknown_model", "GET", "/v2/models/nothing/trace/setting"),
        http_case("trace/get_version", "GET", "/v2/models/add_sub/versions/1/trace/setting"),
        http_case("trace/put", "PUT", "/v2/trace/setting", {}),
    ]
    for where, path in (("global", "/v2/trace/setting"), ("model", "/v2/models/add_sub/trace/setting")):
        cases += [http_case(f"trace/{where}_{key}", "POST", path, body) for key, body in _TRACES.items()]
        cases.append(http_case(f"trace/{where}_get", "GET", path))
    unknown = {"trace_rate": "5"}
    return [
        *cases,
        http_case("trace/post_unknown_model", "POST", "/v2/models/nothing/trace/setting", unknown),
        http_case("trace/post_unloaded_model", "POST", "/v2/models/unloaded/trace/setting", unknown),
    ]


def _http_logs() -> list[Case]:
    cases = [http_case("logging/get", "GET", "/v2/logging"), http_case("logging/put", "PUT", "/v2/logging", {})]
    return cases + [http_case(f"logging/{key}", "POST", "/v2/logging", body) for key, body in _LOGS.items()]


def _trace(model: str = "", **settings: list[str]) -> Message:
    message = pb.TraceSettingRequest(model_name=model)
    for name, value in settings.items():
        message.settings[name].value.extend(value)
        message.settings[name].SetInParent()
    return message


def _grpc_traces() -> list[Case]:
    bodies: dict[str, dict[str, list[str]]] = {
        "get": {},
        "rate": {"trace_rate": ["5"]},
        "rate_word": {"trace_rate": ["x"]},
        "rate_two": {"trace_rate": ["5", "6"]},
        "count_minus_2": {"trace_count": ["-2"]},
        "levels": {"trace_level": ["TIMESTAMPS", "TENSORS"]},
        "level_unknown": {"trace_level": ["SOMETHING"]},
        "level_off_and_more": {"trace_level": ["OFF", "TIMESTAMPS"]},
        "file": {"trace_file": ["/tmp/x"]},
        "unknown": {"x": ["1"]},
        "cleared": {"trace_rate": [], "trace_level": []},
    }
    results = []
    for where, model in (("global", ""), ("model", "add_sub"), ("unknown_model", "nothing")):
        for key, settings in bodies.items():
            results.append(grpc_case(f"grpc_trace/{where}_{key}", "TraceSetting", _trace(model, **settings)))
    return results


def _grpc_logs() -> list[Case]:
    bodies: dict[str, dict[str, dict[str, Any]]] = {
        "get": {},
        "info_off": {"log_info": {"bool_param": False}},
        "info_on": {"log_info": {"bool_param": True}},
        "info_number": {"log_info": {"uint32_param": 1}},
        "verbose": {"log_verbose_level": {"uint32_param": 1}},
        "verbose_off": {"log_verbose_level": {"uint32_param": 0}},
        "verbose_text": {"log_verbose_level": {"string_param": "1"}},
        "format": {"log_format": {"string_param": "ISO8601"}},
        "format_default": {"log_format": {"string_param": "default"}},
        "format_unknown": {"log_format": {"string_param": "something"}},
        "format_bool": {"log_format": {"bool_param": True}},
        "file": {"log_file": {"string_param": "/tmp/x"}},
        "unknown": {"x": {"bool_param": True}},
        "empty": {"log_info": {}},
    }
    results = []
    for key, settings in bodies.items():
        message = pb.LogSettingsRequest()
        for name, value in settings.items():
            message.settings[name].CopyFrom(pb.LogSettingsRequest.SettingValue(**value))
        results.append(grpc_case(f"grpc_logging/{key}", "LogSettings", message))
    return results

"""The repository extension and statistics over gRPC, in explicit mode."""

import json
from typing import Any

from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb

from ..answers import Case
from ..grpc_asking import grpc_case
from .grpc_making import adds, infer, tensor
from .http_repository import CONFIG, SOURCE

_ANY = ("*.ns", "*.last_inference", "*.reason")
_ONE = tensor("IN", "INT32", [1], int_contents=[5])
_TWO = tensor("IN", "INT32", [2], int_contents=[5, 6])


def cases() -> list[Case]:
    """Index, load, unload, and what they refuse."""
    return [
        _index("index"),
        _index("index_ready", ready=True),
        _index("index_named", repository_name="some"),
        _load("load"),
        infer("repository/loaded_serves", "unloaded", [_ONE]),
        _unload("unload"),
        infer("repository/unloaded_infer", "unloaded", [_ONE]),
        grpc_case("grpc_repository/unloaded_ready", "ModelReady", pb.ModelReadyRequest(name="unloaded")),
        grpc_case("grpc_repository/unloaded_stats", "ModelStatistics", pb.ModelStatisticsRequest(name="unloaded")),
        _load("load_broken", model="broken"),
        grpc_case("grpc_repository/broken_ready", "ModelReady", pb.ModelReadyRequest(name="broken")),
        infer("repository/broken_infer", "broken", [_ONE]),
        _load("load_unknown", model="nothing"),
        _load("load_dots", model=".."),
        _load("load_slash", model="a/b"),
        _load("load_blank", model=" "),
        _load("load_no_name", model=""),
        _load("load_named", repository_name="some"),
        _unload("unload_named", repository_name="some"),
        _load("load_unknown_parameter", parameters={"x": {"string_param": "1"}}),
        _load("load_config_number", parameters={"config": {"int64_param": 1}}),
        _load("load_config_no_json", parameters={"config": {"string_param": "{"}}),
        _load("load_file_text", parameters={"config": _config(), "file:1/model.py": {"string_param": "x"}}),
        _load("load_file_without_config", parameters={"file:1/model.py": {"bytes_param": SOURCE}}),
        _load("override", parameters={"config": _config()}),
        infer("repository/override_serves", "unloaded", [_TWO]),
        _load("override_files", parameters={"config": _config(), "file:1/model.py": {"bytes_param": SOURCE}}),
        infer("repository/override_files_serve", "unloaded", [_TWO]),
        _load("override_escapes", parameters={"config": _config(), "file:../x": {"bytes_param": SOURCE}}),
        _unload("unload_unknown", model="nothing"),
        _unload("unload_dependents", parameters={"unload_dependents": {"bool_param": True}}),
        _unload("unload_dependents_text", parameters={"unload_dependents": {"string_param": "true"}}),
        _unload("unload_unknown_parameter", parameters={"x": {"bool_param": True}}),
    ]


def statistics() -> list[Case]:
    """Counters of fresh models, and after requests."""
    names = {"one": "add_sub", "all": "", "decoupled": "repeat", "unknown": "nothing"}
    results = [_counts(f"fresh_{key}", name) for key, name in names.items()]
    return [
        *results,
        adds("statistics/asked"),
        _counts("used", "add_sub"),
        _counts("version", "add_sub", "1"),
        _counts("unknown_version", "add_sub", "7"),
        _counts("version_word", "add_sub", "x"),
        _counts("version_without_name", "", "1"),
    ]


def _config() -> dict[str, Any]:
    return {"string_param": json.dumps(CONFIG)}


def _index(key: str, **fields: Any) -> Case:
    return grpc_case(f"grpc_repository/{key}", "RepositoryIndex", pb.RepositoryIndexRequest(**fields), any_value=_ANY)


def _counts(key: str, name: str, version: str = "") -> Case:
    message = pb.ModelStatisticsRequest(name=name, version=version)
    return grpc_case(f"grpc_statistics/{key}", "ModelStatistics", message, any_value=_ANY)


def _load(key: str, **fields: Any) -> Case:
    return grpc_case(f"grpc_repository/{key}", "RepositoryModelLoad", _message(pb.RepositoryModelLoadRequest, **fields))


def _unload(key: str, **fields: Any) -> Case:
    return grpc_case(
        f"grpc_repository/{key}", "RepositoryModelUnload", _message(pb.RepositoryModelUnloadRequest, **fields)
    )


def _message(kind: Any, model: str = "unloaded", parameters: dict[str, Any] | None = None, **fields: Any) -> Message:
    message: Message = kind(model_name=model, **fields)
    for name, value in (parameters or {}).items():
        message.parameters[name].CopyFrom(pb.ModelRepositoryParameter(**value))  # type: ignore[attr-defined]
    return message

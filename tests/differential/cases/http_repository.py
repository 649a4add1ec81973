"""The repository extension over HTTP, in explicit mode, and statistics."""

import base64
import json

from ..answers import Case
from ..http_asking import Body, http_case
from ..repository import MODELS
from .http_making import A, B, adds, infer, tensor

_REASON = ("$*.reason",)
SOURCE = (MODELS / "sources" / "mirror.py").read_bytes()
CONFIG = {
    "backend": "python",
    "instance_group": [{"kind": "KIND_CPU"}],
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [2]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [2]}],
}
_ZEROS = {"IN": {"data_type": "TYPE_INT32", "dims": [2], "zero_data": True}}
_BATCHING = {
    "delay_in_order": {
        "dynamic_batching": {"preserve_ordering": True, "default_queue_policy": {"timeout_action": "DELAY"}}
    },
    "delay_in_order_with_timeout": {
        "dynamic_batching": {
            "preserve_ordering": True,
            "default_queue_policy": {"timeout_action": "DELAY", "default_timeout_microseconds": 9},
        }
    },
    "warmup": {"model_warmup": [{"name": "w", "batch_size": 4, "inputs": _ZEROS}]},
    "warmup_too_large": {"model_warmup": [{"name": "w", "batch_size": 5, "inputs": _ZEROS}]},
}
_COUNTS = ("*.ns", "*.last_inference")


def _post(key: str, path: str, body: Body = None) -> Case:
    return http_case(f"repository/{key}", "POST", f"/v2/repository/{path}", body, any_value=_REASON)


def _get(key: str, path: str) -> Case:
    return http_case(f"repository/{key}", "GET", f"/v2/{path}")


def repository() -> list[Case]:
    """Index, load and unload."""
    return [*_index(), *_loads(), *_refused_loads(), *_overrides(), *_unloads()]


def _index() -> list[Case]:
    return [
        _post("index", "index"),
        _post("index_empty", "index", {}),
        _post("index_ready", "index", {"ready": True}),
        _post("index_not_only_ready", "index", {"ready": False}),
        _post("index_ready_text", "index", {"ready": "true"}),
        _post("index_ready_null", "index", {"ready": None}),
        _post("index_unknown_key", "index", {"x": 1}),
        _post("index_list", "index", []),
        _post("index_no_json", "index", b"{"),
        _post("index_named", "some/index"),
    ]


def _loads() -> list[Case]:
    one = [tensor("IN", "INT32", [1], [5])]
    return [
        _post("load", "models/unloaded/load"),
        infer("repository/loaded_serves", "unloaded", one),
        _post("load_again", "models/unloaded/load", {}),
        _post("load_parameters", "models/unloaded/load", {"parameters": {}}),
        _post("unload", "models/unloaded/unload"),
        _get("unloaded_ready", "models/unloaded/ready"),
        _get("unloaded_metadata", "models/unloaded"),
        _get("unloaded_version", "models/unloaded/versions/1"),
        _get("unloaded_version_ready", "models/unloaded/versions/1/ready"),
        _get("unloaded_stats", "models/unloaded/stats"),
        infer("repository/unloaded_infer", "unloaded", one),
        _post("index_with_unloaded", "index"),
        _get("server_ready_with_unloaded", "health/ready"),
        _post("load_broken", "models/broken/load"),
        _post("index_with_broken", "index"),
        _get("broken_ready", "models/broken/ready"),
        _get("broken_version_ready", "models/broken/versions/1/ready"),
        infer("repository/broken_infer", "broken", one),
        _get("server_ready_with_broken", "health/ready"),
        _post("unload_broken", "models/broken/unload"),
        _get("server_ready_after_broken", "health/ready"),
        _post("index_after_broken", "index"),
    ]


def _refused_loads() -> list[Case]:
    return [
        _post("load_unknown", "models/nothing/load"),
        _post("load_dots", "models/../load"),
        _post("load_escaped_dots", "models/%2E%2E/load"),
        _post("load_escaped_slash", "models/a%2Fb/load"),
        _post("load_blank", "models/%20/load"),
        _post("load_no_name", "models//load"),
        _post("load_named", "some/models/unloaded/load"),
        _post("unload_named", "some/models/unloaded/unload"),
        _post("load_no_json", "models/unloaded/load", b"{"),
        _post("load_list", "models/unloaded/load", []),
        _post("load_parameters_list", "models/unloaded/load", {"parameters": []}),
        _post("load_unknown_parameter", "models/unloaded/load", {"parameters": {"x": "1"}}),
        _post("load_unknown_parameter_number", "models/unloaded/load", {"parameters": {"x": 1}}),
        _post("load_config_number", "models/unloaded/load", {"parameters": {"config": 1}}),
        _post("load_config_object", "models/unloaded/load", {"parameters": {"config": CONFIG}}),
        _post("load_config_no_json", "models/unloaded/load", {"parameters": {"config": "{"}}),
        _post("load_config_unknown_key", "models/unloaded/load", {"parameters": {"config": '{"x": 1}'}}),
        _post("load_config_empty", "models/unloaded/load", {"parameters": {"config": ""}}),
        _post("load_file_without_config", "models/unloaded/load", {"parameters": {"file:1/model.py": "eA=="}}),
        _post("index_after_refusals", "index"),
        _post(
            "load_refused_before_any", "models/never/load", {"parameters": {"config": "{", "file:1/model.py": "eA=="}}
        ),
        _get("refused_before_any_ready", "models/never/ready"),
        _get("server_ready_after_refusals", "health/ready"),
    ]


def _overrides() -> list[Case]:
    def load(key: str, config: object, **files: str) -> Case:
        fields = {"config": json.dumps(config)} | {f"file:{name}": content for name, content in files.items()}
        return _post(key, "models/unloaded/load", {"parameters": fields})

    code = base64.b64encode(SOURCE).decode()
    two = [tensor("IN", "INT32", [2], [5, 6])]
    return [
        load("override", CONFIG),
        _get("override_config", "models/unloaded/config"),
        infer("repository/override_serves", "unloaded", two),
        load("override_lower_case", {**CONFIG, "instance_group": [{"kind": "kind_cpu"}]}),
        load("override_files", CONFIG, **{"1/model.py": code}),
        infer("repository/override_files_serve", "unloaded", two),
        load("override_wrapped", CONFIG, **{"1/model.py": base64.encodebytes(SOURCE).decode().rstrip("=\n")}),
        infer("repository/override_wrapped_serves", "unloaded", two),
        *(load(f"override_{key}", CONFIG | {"max_batch_size": 4} | more) for key, more in _BATCHING.items()),
        load("override_version", CONFIG, **{"7/model.py": code}),
        _get("override_version_metadata", "models/unloaded"),
        load("override_escapes", CONFIG, **{"../x": code}),
        load("override_no_base64", CONFIG, **{"1/model.py": "*"}),
        load("override_broken_code", CONFIG, **{"1/model.py": base64.b64encode(b"raise ValueError").decode()}),
        infer("repository/override_broken_code_serves", "unloaded", two),
        _post("override_index", "index"),
        _post(
            "override_new_name",
            "models/brand_new/load",
            {"parameters": {"config": json.dumps(CONFIG), "file:1/model.py": code}},
        ),
        _post("override_new_name_index", "index"),
        _post("override_ends", "models/unloaded/load"),
        _get("override_ended_config", "models/unloaded/config"),
    ]


def _unloads() -> list[Case]:
    return [
        _post("unload_unknown", "models/nothing/unload"),
        _post("unload_never_loaded", "models/broken/unload"),
        _post("unload_dots", "models/%2E%2E/unload"),
        _post("unload_dependents", "models/unloaded/unload", {"parameters": {"unload_dependents": True}}),
        _post("unload_dependents_text", "models/unloaded/unload", {"parameters": {"unload_dependents": "true"}}),
        _post("unload_unknown_parameter", "models/unloaded/unload", {"parameters": {"x": 1}}),
        _post("unload_no_json", "models/unloaded/unload", b"{"),
        _post("unload_many_versions", "models/versions/unload"),
        _post("index_after_many_versions", "index"),
        _post("load_many_versions", "models/versions/load"),
        _get("many_versions", "models/versions"),
        _post("index_at_last", "index"),
    ]


def statistics() -> list[Case]:
    """Counters of fresh models, after requests that go well, and after those that fail."""
    failing = [infer("statistics/failing", "failing", [tensor("IN", "INT32", [1], [how])]) for how in (0, 1, 2, 3)]
    two = [{**each, "shape": [2, 4], "data": [1] * 8} for each in (A, B)]
    refused = infer("statistics/refused", "add_sub", [A])
    return [
        _counts("fresh", "models/add_sub/stats"),
        adds("statistics/one"),
        infer("statistics/two", "add_sub", two),
        refused,
        _counts("used", "models/add_sub/stats"),
        _counts("version", "models/add_sub/versions/1/stats"),
        *failing,
        _counts("failed", "models/failing/stats"),
        _counts("many_versions", "models/versions/stats"),
        _counts("decoupled", "models/repeat/stats"),
        _counts("unknown", "models/nothing/stats"),
        _counts("unknown_version", "models/add_sub/versions/7/stats"),
        _counts("not_loaded", "models/unloaded/stats"),
        _counts("all", "models/stats"),
    ]


def _counts(key: str, path: str) -> Case:
    return http_case(f"statistics/{key}", "GET", f"/v2/{path}", any_value=_COUNTS)

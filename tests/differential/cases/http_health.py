"""Health, metadata, configuration and routing over HTTP."""

from ..answers import Case
from ..http_asking import bytes_case, http_case, request
from ..repository import names

_SERVER = ("$.name", "$.version")
_PATHS = {
    "server_metadata": "/v2",
    "live": "/v2/health/live",
    "ready": "/v2/health/ready",
    "ready_query": "/v2/health/ready?x=1",
    "unknown_model": "/v2/models/nothing",
    "unknown_model_ready": "/v2/models/nothing/ready",
    "unknown_model_config": "/v2/models/nothing/config",
    "unknown_version": "/v2/models/add_sub/versions/7",
    "unknown_version_ready": "/v2/models/add_sub/versions/7/ready",
    "unknown_version_config": "/v2/models/add_sub/versions/7/config",
    "version": "/v2/models/add_sub/versions/1",
    "version_ready": "/v2/models/add_sub/versions/1/ready",
    "version_config": "/v2/models/add_sub/versions/1/config",
    "version_3_of_1_and_3": "/v2/models/versions/versions/3",
    "version_2_of_1_and_3": "/v2/models/versions/versions/2",
    "version_2_of_1_and_3_ready": "/v2/models/versions/versions/2/ready",
    "version_1_of_latest": "/v2/models/latest/versions/1/ready",
    "version_zero": "/v2/models/add_sub/versions/0",
    "version_negative": "/v2/models/add_sub/versions/-1",
    "version_word": "/v2/models/add_sub/versions/one",
    "version_empty": "/v2/models/add_sub/versions/",
    "version_padded": "/v2/models/add_sub/versions/01",
    "version_huge": "/v2/models/add_sub/versions/99999999999999999999",
    "version_int64": "/v2/models/add_sub/versions/9223372036854775807",
    "unloaded": "/v2/models/unloaded",
    "unloaded_ready": "/v2/models/unloaded/ready",
    "unloaded_config": "/v2/models/unloaded/config",
    "nowhere": "/v2/nowhere",
    "root": "/",
    "v1": "/v1",
    "v2_slash": "/v2/",
    "health": "/v2/health",
    "health_nothing": "/v2/health/nothing",
    "live_slash": "/v2/health/live/",
    "models": "/v2/models",
    "models_slash": "/v2/models/",
    "model_slash": "/v2/models/add_sub/",
    "model_nothing": "/v2/models/add_sub/nothing",
    "model_encoded": "/v2/models/add%5Fsub",
    "model_spaces": "/v2/models/add%20sub",
    "model_dots": "/v2/models/..",
    "double_slash": "//v2/health/live",
}
_METHODS = {
    "post_live": ("POST", "/v2/health/live"),
    "post_metadata": ("POST", "/v2"),
    "post_model": ("POST", "/v2/models/add_sub"),
    "post_config": ("POST", "/v2/models/add_sub/config"),
    "post_stats": ("POST", "/v2/models/add_sub/stats"),
    "put_live": ("PUT", "/v2/health/live"),
    "delete_model": ("DELETE", "/v2/models/add_sub"),
    "get_infer": ("GET", "/v2/models/add_sub/infer"),
    "put_infer": ("PUT", "/v2/models/add_sub/infer"),
    "get_index": ("GET", "/v2/repository/index"),
    "get_load": ("GET", "/v2/repository/models/add_sub/load"),
    "get_unload": ("GET", "/v2/repository/models/add_sub/unload"),
    "head_live": ("HEAD", "/v2/health/live"),
    "options_live": ("OPTIONS", "/v2/health/live"),
    "patch_nowhere": ("PATCH", "/v2/nowhere"),
}


def cases() -> list[Case]:
    """Every case of this page."""
    cases = [http_case(f"health/{key}", "GET", path, any_value=_SERVER) for key, path in _PATHS.items()]
    cases += [http_case(f"method/{key}", method, path) for key, (method, path) in _METHODS.items()]
    for name in names():
        cases.append(http_case(f"metadata/{name}", "GET", f"/v2/models/{name}"))
        cases.append(http_case(f"ready/{name}", "GET", f"/v2/models/{name}/ready"))
        cases.append(http_case(f"config/{name}", "GET", f"/v2/models/{name}/config"))
    cases.append(bytes_case("health/http_1.0", request("GET", "/v2/health/live").replace(b"HTTP/1.1", b"HTTP/1.0")))
    return cases

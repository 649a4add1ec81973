"""Calls that need a secret header, headers that become parameters, and what is refused outside of explicit mode."""

from tritonclient.grpc import service_pb2 as pb

from ..answers import Case
from ..grpc_asking import grpc_case
from ..http_asking import http_case
from .grpc_making import infer_request
from .grpc_making import tensor as grpc_tensor
from .http_making import document, tensor

OPTIONS = (
    "--http-restricted-api=model-repository,logging:admin=secret",
    "--grpc-restricted-protocol=model-repository,logging:admin=secret",
    "--http-header-forward-pattern=^x-.*|sequence",
    "--grpc-header-forward-pattern=^x-.*|sequence",
)
_PATHS = {
    "index": ("POST", "/v2/repository/index"),
    "load": ("POST", "/v2/repository/models/add_sub/load"),
    "get_index": ("GET", "/v2/repository/index"),
    "logging": ("GET", "/v2/logging"),
    "free": ("GET", "/v2/health/live"),
}


def restricted() -> list[Case]:
    """With `OPTIONS`: without, with the wrong, and with the right header."""
    headers = {"without": {}, "wrong": {"admin": "other"}, "right": {"admin": "secret"}, "upper": {"ADMIN": "secret"}}
    cases = [
        http_case(f"restricted/{key}_{kind}", method, path, None if method == "GET" else {}, entries)
        for key, (method, path) in _PATHS.items()
        for kind, entries in headers.items()
    ]
    for kind, metadata in {"without": "", "wrong": "other", "right": "secret"}.items():
        entries = (("triton-grpc-protocol-admin", metadata),) if metadata else ()
        cases.append(grpc_case(f"grpc_restricted/index_{kind}", "RepositoryIndex", metadata=entries))
        cases.append(grpc_case(f"grpc_restricted/logging_{kind}", "LogSettings", metadata=entries))
        cases.append(grpc_case(f"grpc_restricted/live_{kind}", "ServerLive", metadata=entries))
    return [*cases, *_forwarded()]


def _forwarded() -> list[Case]:
    one = document([tensor("IN", "INT32", [1], [1])])
    message = infer_request("telling", [grpc_tensor("IN", "INT32", [1], int_contents=[1])])
    headers = {
        "one": {"x-tenant": "north"},
        "upper": {"X-Tenant": "north"},
        "other": {"y-tenant": "north"},
        "reserved": {"sequence_id": "5"},
        "reserved_prefix": {"triton_x-y": "5"},
        "empty": {"x-empty": ""},
        "and_parameter": {"x-tenant": "north"},
    }
    results = []
    for key, each in headers.items():
        parameters = {"parameters": {"x-tenant": "south"}} if key == "and_parameter" else {}
        results.append(http_case(f"forwarded/{key}", "POST", "/v2/models/telling/infer", one | parameters, each))
        metadata = tuple((name.lower(), value) for name, value in each.items())
        results.append(grpc_case(f"grpc_forwarded/{key}", "ModelInfer", message, metadata))
    return results


def not_explicit() -> list[Case]:
    """Without explicit mode: models cannot be loaded and unloaded."""
    load, unload = pb.RepositoryModelLoadRequest, pb.RepositoryModelUnloadRequest
    return [
        http_case("not_explicit/load", "POST", "/v2/repository/models/add_sub/load"),
        http_case("not_explicit/unload", "POST", "/v2/repository/models/add_sub/unload"),
        http_case("not_explicit/load_unknown", "POST", "/v2/repository/models/nothing/load"),
        http_case("not_explicit/index", "POST", "/v2/repository/index", any_value=("$*.reason",)),
        http_case("not_explicit/ready", "GET", "/v2/health/ready"),
        http_case("not_explicit/broken_ready", "GET", "/v2/models/broken/ready"),
        grpc_case("grpc_not_explicit/load", "RepositoryModelLoad", load(model_name="add_sub")),
        grpc_case("grpc_not_explicit/unload", "RepositoryModelUnload", unload(model_name="add_sub")),
        grpc_case("grpc_not_explicit/ready", "ServerReady"),
    ]

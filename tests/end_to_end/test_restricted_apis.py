"""Every call of both protocols is in the group that restricts it, and in no other."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from naiad_kit.frontends.restrictions import APIS

from .conftest import ending_well
from .running import PATIENCE, Running

MODEL = "/v2/models/{model}"
VERSION = MODEL + "/versions/{version}"
REGION = "/region/{region}"
REGIONS = [
    f"/v2/{kind}sharedmemory{location}"
    for kind in ("system", "cuda")
    for location in ("/status", "/unregister", f"{REGION}/status", f"{REGION}/register", f"{REGION}/unregister")
]
PATHS = {
    "health": ["/v2/health/live", "/v2/health/ready", f"{MODEL}/ready", f"{VERSION}/ready"],
    "metadata": [
        *("/", "/v2", MODEL, VERSION, "/docs", "/docs/{model}"),
        *("/openapi.json", f"{MODEL}/openapi.json", f"{VERSION}/openapi.json"),
    ],
    "inference": [
        f"{path}/{action}" for path in (MODEL, VERSION) for action in ("infer", "generate", "generate_stream")
    ],
    "shared-memory": REGIONS,
    "model-config": [f"{MODEL}/config", f"{VERSION}/config"],
    "model-repository": [
        "/v2/repository/index",
        "/v2/repository/{repository}/index",
        "/v2/repository/models/{model}/load",
        "/v2/repository/models/{model}/unload",
        "/v2/repository/{repository}/models/{model}/load",
        "/v2/repository/{repository}/models/{model}/unload",
    ],
    "statistics": ["/v2/models/stats", f"{MODEL}/stats", f"{VERSION}/stats"],
    "trace": ["/v2/trace/setting", f"{MODEL}/trace/setting"],
    "logging": ["/v2/logging"],
}
RPCS = {
    "health": ["ServerLive", "ServerReady", "ModelReady"],
    "metadata": ["ServerMetadata", "ModelMetadata"],
    "inference": ["ModelInfer", "ModelStreamInfer"],
    "shared-memory": [
        f"{kind}SharedMemory{action}" for kind in ("System", "Cuda") for action in ("Status", "Register", "Unregister")
    ],
    "model-config": ["ModelConfig"],
    "model-repository": ["RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"],
    "statistics": ["ModelStatistics"],
    "trace": ["TraceSetting"],
    "logging": ["LogSettings"],
}
REFUSED = "This protocol is restricted, expecting header 'triton-grpc-protocol-{}'"


@pytest.fixture(scope="module")
def restricted(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server where each group needs a header of its own."""
    folder = tmp_path_factory.mktemp("restricted")
    shutil.copytree(written / "echo", folder / "models" / "echo")
    rules = [f"{api}:for-{api}=secret" for api in APIS]
    options = ("http-restricted-api", "grpc-restricted-protocol")
    words = [f"--{option}={rule}" for option in options for rule in rules]
    with ending_well(Running(folder / "models", folder / "log", *words)) as running:
        yield running


def keys(*apis: str, prefix: str = "") -> dict[str, str]:
    return {f"{prefix}for-{api}": "secret" for api in apis}


def others(api: str) -> list[str]:
    return [each for each in APIS if each != api]


@pytest.mark.parametrize("api", APIS)
def test_the_paths_of_a_group_need_its_header_and_no_other(restricted: Running, api: str) -> None:
    described = restricted.ask("GET", "/openapi.json", headers=keys("metadata")).document["paths"]
    for path in PATHS[api]:
        named = path.format(model="echo", version=1, region="r", repository="x")
        for method in [*described.get(path, {"post": {}})]:
            body = b"" if method == "post" else None
            shut = [restricted.ask(method.upper(), named, body, each) for each in ({}, keys(*others(api)))]
            opened = restricted.ask(method.upper(), named, body, keys(api))

            recorded = [(answer.status, answer.error) for answer in shut]
            assert recorded == [(403, f"This API is restricted, expecting header 'for-{api}'")] * 2, named
            assert opened.status != 403, named


def test_every_path_that_the_server_describes_is_in_a_group(restricted: Running) -> None:
    described = restricted.ask("GET", "/openapi.json", headers=keys("metadata")).document["paths"]

    assert set(described) <= {path for paths in PATHS.values() for path in paths}


@pytest.mark.parametrize("api", APIS)
def test_the_rpcs_of_a_group_need_its_metadata_and_no_other(restricted: Running, api: str) -> None:
    prefix = "triton-grpc-protocol-"
    with grpc.insecure_channel(f"127.0.0.1:{restricted.grpc_port}") as channel:
        for name in RPCS[api]:
            shut = [outcome(channel, name, each) for each in ({}, keys(*others(api), prefix=prefix), keys(api))]
            opened = outcome(channel, name, keys(api, prefix=prefix))

            assert shut == [("UNAVAILABLE", REFUSED.format(f"for-{api}"))] * 3, name
            assert "restricted" not in opened[1], name


def test_every_rpc_is_in_a_group_and_the_standard_health_too(restricted: Running) -> None:
    service = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    with grpc.insecure_channel(f"127.0.0.1:{restricted.grpc_port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            health.Check(HealthCheckRequest(), timeout=PATIENCE)

    assert {method.name for method in service.methods} == {name for names in RPCS.values() for name in names}
    assert caught.value.details() == REFUSED.format("for-health")


def outcome(channel: grpc.Channel, name: str, metadata: dict[str, str]) -> tuple[str, str]:
    """The status and details of a call with an empty message."""
    call = getattr(service_pb2_grpc.GRPCInferenceServiceStub(channel), name)
    request = getattr(service_pb2, "ModelInferRequest" if name == "ModelStreamInfer" else f"{name}Request")()
    headers = tuple(metadata.items())
    try:
        if name == "ModelStreamInfer":
            list(call(iter([request]), metadata=headers, timeout=PATIENCE))
        else:
            call(request, metadata=headers, timeout=PATIENCE)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return "OK", ""

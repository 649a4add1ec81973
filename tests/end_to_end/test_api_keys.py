"""API keys over both protocols: what a key opens, how a call is refused, and keys that change while the server runs."""

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from .conftest import Start
from .running import PATIENCE, Running, until

APP, OPERATOR = {"authorization": "Bearer app-key"}, {"x-api-key": "operator-key"}


def keys(app: str = "app-key") -> str:
    return f"""
[[key]]
name = "app"
sha256 = "{sha256(app.encode()).hexdigest()}"
models = ["echo"]

[[key]]
name = "operator"
sha256 = "{sha256(b"operator-key").hexdigest()}"
apis = ["metadata", "inference", "statistics", "model-repository"]
"""


@pytest.fixture(params=["naiad", "grpcio"])
def keyed(request: pytest.FixtureRequest, start: Start, written: Path, tmp_path: Path) -> Running:
    """A server of `echo` and `other` with keys, over each gRPC transport."""
    for name in ("echo", "other"):
        shutil.copytree(written / "echo", tmp_path / "models" / name)
        config = tmp_path / "models" / name / "config.pbtxt"
        if config.exists():
            config.write_text(config.read_text().replace('name: "echo"', f'name: "{name}"'))
    (tmp_path / "keys.toml").write_text(keys())
    running: Running = start(f"--api-keys={tmp_path / 'keys.toml'}", f"--grpc-transport={request.param}")
    until(running.ready)
    return running


def over_http(running: Running, path: str, headers: dict[str, str], body: bytes | None = None) -> tuple[int, str]:
    answer = running.ask("GET" if body is None else "POST", path, body, headers)
    return answer.status, "" if answer.status == 200 else answer.error


BODY = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}'


def test_http_answers_401_without_a_key_and_403_to_one_for_other_calls(keyed: Running) -> None:
    echo, other = "/v2/models/echo/infer", "/v2/models/other/infer"

    assert over_http(keyed, "/v2/health/ready", {}) == (200, "")
    assert over_http(keyed, echo, {}, BODY)[0] == 401
    assert over_http(keyed, echo, {"authorization": "Bearer guess"}, BODY)[0] == 401
    assert keyed.ask("POST", echo, BODY, {}).headers["www-authenticate"] == "Bearer"
    assert over_http(keyed, echo, APP, BODY) == (200, "")
    status, error = over_http(keyed, other, APP, BODY)
    assert (status, "'app'" in error, "'other'" in error) == (403, True, True)
    assert over_http(keyed, "/v2/models/other/generate", APP, b'{"x": 1}')[0] == 403
    assert over_http(keyed, "/v2/models/echo", APP) == (200, "")
    assert over_http(keyed, "/v2/models/other", APP)[0] == 403
    assert over_http(keyed, "/v2", APP)[0] == 403
    assert over_http(keyed, "/v2/repository/index", APP, b"{}")[0] == 403
    assert over_http(keyed, other, OPERATOR, BODY) == (200, "")
    assert over_http(keyed, "/v2", OPERATOR) == (200, "")
    assert over_http(keyed, "/v2/logging", OPERATOR)[0] == 403


def outcome(running: Running, name: str, request: Any, metadata: dict[str, str]) -> tuple[str, str]:
    """The status of a unary call, and its details."""
    with grpc.insecure_channel(f"127.0.0.1:{running.grpc_port}") as channel:
        call = getattr(service_pb2_grpc.GRPCInferenceServiceStub(channel), name)
        try:
            call(request, metadata=tuple(metadata.items()), timeout=PATIENCE)
        except grpc.RpcError as error:
            return error.code().name, error.details()
    return "OK", ""


def infer(running: Running, model: str, metadata: dict[str, str]) -> str:
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="x", datatype="FP32", shape=[1])
    request.raw_input_contents.append(np.ones(1, np.float32).tobytes())
    return outcome(running, "ModelInfer", request, metadata)[0]


def test_grpc_answers_unauthenticated_and_permission_denied(keyed: Running) -> None:
    load = service_pb2.RepositoryModelLoadRequest(model_name="echo")

    assert outcome(keyed, "ServerReady", service_pb2.ServerReadyRequest(), {}) == ("OK", "")
    assert infer(keyed, "echo", {}) == "UNAUTHENTICATED"
    assert infer(keyed, "echo", {"x-api-key": "guess"}) == "UNAUTHENTICATED"
    assert infer(keyed, "echo", APP) == "OK"
    assert infer(keyed, "other", APP) == "PERMISSION_DENIED"
    assert infer(keyed, "other", OPERATOR) == "OK"
    for model, expected in (("echo", "OK"), ("other", "PERMISSION_DENIED"), ("", "PERMISSION_DENIED")):
        assert outcome(keyed, "ModelMetadata", service_pb2.ModelMetadataRequest(name=model), APP)[0] == expected
    assert outcome(keyed, "ServerMetadata", service_pb2.ServerMetadataRequest(), APP)[0] == "PERMISSION_DENIED"
    assert outcome(keyed, "RepositoryModelLoad", load, APP)[0] == "PERMISSION_DENIED"
    assert outcome(keyed, "ServerMetadata", service_pb2.ServerMetadataRequest(), OPERATOR)[0] == "OK"
    assert outcome(keyed, "LogSettings", service_pb2.LogSettingsRequest(), OPERATOR)[0] == "PERMISSION_DENIED"


def test_a_stream_checks_the_key_of_each_request(keyed: Running) -> None:
    results: list[str] = []
    value = triton.InferInput("x", [1], "FP32")
    value.set_data_from_numpy(np.ones(1, np.float32))
    with triton.InferenceServerClient(f"127.0.0.1:{keyed.grpc_port}") as client:
        client.start_stream(
            callback=lambda result, error: results.append(error.message() if error else "answered"), headers=APP
        )
        client.async_stream_infer("echo", [value])
        client.async_stream_infer("other", [value])
        until(lambda: len(results) == 2)
        client.stop_stream()

        answered, refused = results
        assert (answered, "'app'" in refused, "'other'" in refused) == ("answered", True, True)
        with pytest.raises(InferenceServerException, match="UNAUTHENTICATED"):
            client.get_model_metadata("echo")


def test_a_key_that_is_replaced_is_refused_without_a_restart(keyed: Running, tmp_path: Path) -> None:
    path, renewed = "/v2/models/echo/infer", {"authorization": "Bearer renewed"}
    assert over_http(keyed, path, APP, BODY)[0] == 200
    assert over_http(keyed, path, renewed, BODY)[0] == 401

    fresh = tmp_path / "fresh.toml"
    fresh.write_text(keys("renewed"))
    fresh.replace(tmp_path / "keys.toml")

    until(lambda: over_http(keyed, path, renewed, BODY)[0] == 200)
    assert over_http(keyed, path, APP, BODY)[0] == 401
    assert (infer(keyed, "echo", renewed), infer(keyed, "echo", APP)) == ("OK", "UNAUTHENTICATED")


def test_a_file_with_a_mistake_ends_the_start(start: Start, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    path = tmp_path / "keys.toml"
    path.write_text('[[key]]\nname = "app"\nsha256 = "secret"\n')

    running = start(f"--api-keys={path}")

    assert running.exit_status() == 2
    assert f"--api-keys: {path}:1: key 'app' needs sha256" in running.log

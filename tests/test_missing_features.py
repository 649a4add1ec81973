"""Servers in an environment without the plugins of features: they serve, and say what to install for the rest."""

import http.client
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import tritonclient.grpc as triton

from .environments import with_members
from .written import ask, infer, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

FRONTENDS = ("http", "grpc")
DOUBLE = """
import naiad_custom

@naiad_custom.model
def double(text_input: naiad_custom.Array[naiad_custom.INT64, 1]) -> naiad_custom.Array[naiad_custom.INT64, 1]:
    return text_input + text_input
"""
CALLS = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        asked = pb_utils.InferenceRequest(
            model_name="m", requested_output_names=["y"], inputs=[pb_utils.get_input_tensor_by_name(requests[0], "x")]
        )
        answer = asked.exec()
        return [pb_utils.InferenceResponse(error=answer.error())]
"""
TENSORS = """
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
"""
STAYS = """
import sys

from naiad_custom import FP32, Array, model


@model
def stays(x: Array[FP32, -1]) -> Array[FP32, -1]:
    frame, names = sys._getframe(), set()
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return x * 0 + ("_run_instance" in names and "_lead" not in names)
"""


@pytest.fixture(scope="module")
def naiad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `naiad` with Python models, HTTP and gRPC, and no feature beside."""
    members = ["naiad", "naiad-custom", "naiad-http", "naiad-grpc"]
    return with_members(tmp_path_factory.mktemp("bare") / "venv", members)


@pytest.mark.parametrize(
    ("option", "plugin"),
    [
        ("--allow-metrics=false", "naiad-metrics"),
        ("--trace-config=level=TIMESTAMPS", "naiad-tracing"),
        ("--loop-handoff=false", "naiad-loop-handoff"),
        ("--rate-limit=execution_count", "naiad-rate-limiter"),
    ],
)
def test_an_option_of_a_missing_feature_is_unknown_and_answered_with_what_to_install(
    naiad: Path, tmp_path: Path, option: str, plugin: str
) -> None:
    answer = subprocess.run([naiad, "serve", option, tmp_path], capture_output=True, text=True, check=False)

    name = option.partition("=")[0]
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"naiad serve: unknown option {name}. It comes with {plugin}: pip install '{plugin}'.\n"


def test_a_request_for_load_headers_is_answered_without_them(serve: "Serve", naiad: Path, tmp_path: Path) -> None:
    write_model(tmp_path, "double", DOUBLE)

    server = serve(tmp_path, naiad=naiad, frontends=FRONTENDS)
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    body = json.dumps({"text_input": 4})
    connection.request("POST", "/v2/models/double/generate", body, {"endpoint-load-metrics-format": "json"})
    answer = connection.getresponse()

    assert (answer.status, answer.getheader("endpoint-load-metrics")) == (200, None)
    answer.read()
    connection.close()


def test_a_model_that_calls_another_is_answered_with_what_to_install(
    serve: "Serve", naiad: Path, tmp_path: Path
) -> None:
    write_model(tmp_path, "m", CALLS, TENSORS)

    _, answer = infer(serve(tmp_path, naiad=naiad, frontends=FRONTENDS).url, "m", 1)

    assert "pip install 'naiad-model-calls'" in answer["error"]


def test_trace_settings_are_answered_with_what_to_install(serve: "Serve", naiad: Path, tmp_path: Path) -> None:
    server = serve(tmp_path, "--model-control-mode=explicit", naiad=naiad, frontends=FRONTENDS)
    target = server.wait_for(r"grpc frontend listens at grpc://(\S+:\d+)").group(1)

    url = server.url
    status, refused = ask(f"{url}/v2/trace/setting")
    with triton.InferenceServerClient(target) as client, pytest.raises(Exception, match="naiad-tracing") as failed:
        client.update_trace_settings(settings={"trace_rate": "1"})
    extensions = ask(f"{url}/v2")[1]["extensions"]

    assert (status, "pip install 'naiad-tracing'" in refused["error"]) == (501, True)
    assert "StatusCode.UNIMPLEMENTED" in str(failed.value)
    assert ("trace" in extensions, "statistics" in extensions) == (False, True)


def test_without_the_loop_handoff_the_event_loop_stays(serve: "Serve", naiad: Path, tmp_path: Path) -> None:
    write_model(tmp_path, "stays", STAYS)

    url = serve(tmp_path, naiad=naiad, frontends=FRONTENDS).url
    answers = [infer(url, "stays", 1)[1] for _ in range(400)]

    assert {answer["outputs"][0]["data"][0] for answer in answers} == {1.0}


def test_without_the_rate_limiter_its_configuration_limits_nothing(serve: "Serve", naiad: Path, tmp_path: Path) -> None:
    group = 'instance_group { kind: KIND_CPU rate_limiter { resources { name: "R" count: 1 } } }'
    write_model(tmp_path, "stays", STAYS, group)

    server = serve(tmp_path, naiad=naiad, frontends=FRONTENDS)

    assert infer(server.url, "stays", 1, 2)[0] == 200

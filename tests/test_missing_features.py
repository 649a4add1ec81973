"""A server in an environment without the plugins of features: it serves, and says what to install for the rest."""

import http.client
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import tritonclient.grpc as triton

from .conftest import ServerProcess, serving
from .environments import hint_of_checkout, with_members
from .written import ask, infer, write_model

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
COUNTS = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(name="seen", description="requests", kind=pb_utils.MetricFamily.COUNTER)
        self.seen = self.family.Metric(labels={})

    def execute(self, requests):
        self.seen.increment(len(requests))
        y = [pb_utils.get_input_tensor_by_name(each, "x").as_numpy() * 0 + self.seen.value() for each in requests]
        return [pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("y", each)]) for each in y]
"""
LIMITED = 'instance_group { kind: KIND_CPU rate_limiter { resources { name: "R" count: 1 } } }'
CACHED = "response_cache { enable: true }"
SEQUENCES = f'backend: "python" max_batch_size: 4 sequence_batching {{ }} {TENSORS}'
ENSEMBLE = f"""
platform: "ensemble"
{TENSORS}
ensemble_scheduling {{
  step {{
    model_name: "stays" model_version: -1
    input_map {{ key: "x" value: "x" }}
    output_map {{ key: "y" value: "y" }}
  }}
}}
"""
ON_EVENT_LOOP = f'backend: "python" {TENSORS} parameters {{ key: "execute_on" value {{ string_value: "event_loop" }} }}'
AT_START = ("double", "calls", "stays", "counts", "limited", "cached")


@dataclass(frozen=True)
class Bare:
    """A server with Python models, HTTP and gRPC, and no feature beside: the command, its log, where it listens."""

    naiad: Path
    log: ServerProcess
    url: str
    target: str


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    folder = tmp_path_factory.mktemp("bare")
    naiad = with_members(folder / "venv", ["naiad", "naiad-custom", "naiad-http", "naiad-grpc"])
    models = folder / "models"
    write_model(models, "double", DOUBLE)
    write_model(models, "calls", CALLS, f'backend: "python" {TENSORS}')
    write_model(models, "stays", STAYS)
    write_model(models, "counts", COUNTS, f'backend: "python" {TENSORS}')
    write_model(models, "limited", STAYS, LIMITED)
    write_model(models, "cached", STAYS, CACHED)
    write_model(models, "sequences", CALLS, SEQUENCES)
    write_model(models, "ensemble", "", ENSEMBLE)
    write_model(models, "on_event_loop", CALLS, ON_EVENT_LOOP)
    with serving() as serve:
        words = ["--model-control-mode=explicit", *(f"--load-model={name}" for name in AT_START), models]
        server = serve(*words, naiad=naiad, frontends=("http", "grpc"))
        ports = dict(server.wait_for(r"(http|grpc) frontend listens at \S+:(\d+)").groups() for _ in range(2))
        yield Bare(naiad, server, f"http://127.0.0.1:{ports['http']}", f"127.0.0.1:{ports['grpc']}")


@pytest.mark.parametrize(
    ("option", "plugin"),
    [
        ("--allow-metrics=false", "naiad-metrics"),
        ("--trace-config=level=TIMESTAMPS", "naiad-tracing"),
        ("--loop-handoff=false", "naiad-loop-handoff"),
        ("--rate-limit=execution_count", "naiad-rate-limiter"),
        ("--cache-config=local,size=1048576", "naiad-cache"),
        ("--allow-explain", "naiad-explain"),
        ("--allow-client-shm=true", "naiad-shared-memory"),
    ],
)
def test_an_option_of_a_missing_feature_is_unknown_and_answered_with_what_to_install(
    bare: Bare, tmp_path: Path, option: str, plugin: str
) -> None:
    answer = subprocess.run([bare.naiad, "serve", option, tmp_path], capture_output=True, text=True, check=False)

    name = option.partition("=")[0]
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == f"naiad serve: unknown option {name}. {hint_of_checkout(plugin)}\n"


@pytest.mark.parametrize(
    ("model", "plugin", "expected"),
    [
        ("sequences", "naiad-scheduler-sequence", 404),
        ("ensemble", "naiad-scheduler-ensemble", 404),
        ("on_event_loop", "naiad-loop-handoff", 400),
    ],
)
def test_a_configuration_of_a_missing_feature_is_refused_at_its_load(
    bare: Bare, model: str, plugin: str, expected: int
) -> None:
    status, answer = ask(f"{bare.url}/v2/repository/models/{model}/load", {})

    assert (status, hint_of_checkout(plugin) in answer["error"]) == (expected, True), answer


def test_a_cache_that_is_missing_is_warned_of_and_its_models_are_served(bare: Bare) -> None:
    answers = [infer(bare.url, "cached", 1)[0] for _ in range(2)]

    assert answers == [200, 200]
    assert [line for line in bare.log.lines if hint_of_checkout("naiad-cache") in line]


REGION = "v2/{}sharedmemory/region/r/register"
REQUESTS = [
    ("v2/trace/setting", {"trace_rate": "1"}, "naiad-tracing"),
    (REGION.format("system"), {"key": "/r", "offset": 0, "byte_size": 4}, "naiad-shared-memory"),
    (REGION.format("cuda"), {"raw_handle": {"b64": ""}, "device_id": 0, "byte_size": 4}, "naiad-shared-memory"),
    ("v2/models/stays/infer", {"parameters": {"naiad_explain": True}}, "naiad-explain"),
]


@pytest.mark.parametrize(("path", "request_", "plugin"), REQUESTS)
def test_an_http_request_that_needs_a_missing_feature_is_not_implemented(
    bare: Bare, path: str, request_: dict, plugin: str
) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}

    status, answer = ask(f"{bare.url}/{path}", {"inputs": [tensor], **request_} if "infer" in path else request_)

    assert (status, hint_of_checkout(plugin) in answer["error"]) == (501, True), answer


def tensor_of_one() -> triton.InferInput:
    tensor = triton.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.ones(1, np.float32))
    return tensor


CALLS_OF_CLIENTS: list[tuple[str, Callable[[triton.InferenceServerClient], object]]] = [
    ("naiad-tracing", lambda client: client.update_trace_settings(settings={"trace_rate": "1"})),
    ("naiad-shared-memory", lambda client: client.register_system_shared_memory("r", "/r", 4)),
    ("naiad-shared-memory", lambda client: client.register_cuda_shared_memory("r", b"", 0, 4)),
    ("naiad-explain", lambda client: client.infer("stays", [tensor_of_one()], parameters={"naiad_explain": True})),
]


@pytest.mark.parametrize(("plugin", "call"), CALLS_OF_CLIENTS)
def test_a_grpc_call_that_needs_a_missing_feature_is_unimplemented(
    bare: Bare, plugin: str, call: Callable[[triton.InferenceServerClient], object]
) -> None:
    with triton.InferenceServerClient(bare.target) as client, pytest.raises(Exception, match=plugin) as failed:
        call(client)

    assert "StatusCode.UNIMPLEMENTED" in str(failed.value)


def test_a_model_that_calls_another_is_answered_with_what_to_install(bare: Bare) -> None:
    _, answer = infer(bare.url, "calls", 1)

    assert "without naiad-model-calls: pip install -e '" in answer["error"]


def test_a_request_for_load_headers_is_answered_without_them(bare: Bare) -> None:
    connection = http.client.HTTPConnection(urlsplit(bare.url).netloc, timeout=20)
    body = json.dumps({"text_input": 4})
    connection.request("POST", "/v2/models/double/generate", body, {"endpoint-load-metrics-format": "json"})
    answer = connection.getresponse()

    assert (answer.status, answer.getheader("endpoint-load-metrics")) == (200, None)
    answer.read()
    connection.close()


def test_a_model_counts_in_metrics_of_its_own(bare: Bare) -> None:
    answers = [infer(bare.url, "counts", 0)[1] for _ in range(2)]

    assert [answer["outputs"][0]["data"] for answer in answers] == [[1.0], [2.0]], answers


def test_without_the_loop_handoff_the_event_loop_stays(bare: Bare) -> None:
    answers = [infer(bare.url, "stays", 1)[1] for _ in range(400)]

    assert {answer["outputs"][0]["data"][0] for answer in answers} == {1.0}


def test_without_the_rate_limiter_its_configuration_limits_nothing(bare: Bare) -> None:
    assert infer(bare.url, "limited", 1, 2)[0] == 200


def test_the_extensions_of_missing_features_are_not_there(bare: Bare) -> None:
    extensions = set(ask(f"{bare.url}/v2")[1]["extensions"])

    assert "statistics" in extensions
    assert extensions.isdisjoint({"trace", "sequence", "system_shared_memory", "cuda_shared_memory"})

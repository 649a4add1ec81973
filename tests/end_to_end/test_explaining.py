"""Timelines of single requests, through every way in which a client can ask for one."""

import json
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from ..fork_server import run_forked
from . import explained
from .asking import ROW
from .conftest import ending_well
from .running import Running


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of models that have something to tell."""
    folder = tmp_path_factory.mktemp("explaining")
    repository = folder / "models"
    explained.write_all(repository)
    words = ("--cache-config=local,size=1048576", "--allow-explain")
    with ending_well(Running(repository, folder / "log", *words)) as running:
        yield running


def _report(document: Any) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(document["parameters"]["naiad_explain"])
    return report


def _grpc(running: Running) -> tritonclient.grpc.InferenceServerClient:
    return tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{running.grpc_port}")


def _input(*values: float) -> tritonclient.grpc.InferInput:
    array = np.array(values, dtype=np.float32).reshape(-1, 1)
    tensor = tritonclient.grpc.InferInput("x", list(array.shape), "FP32")
    tensor.set_data_from_numpy(array)
    return tensor


def _in_order(report: dict[str, Any]) -> bool:
    """Whether the times follow each other as what happened did."""
    (execution,) = report["executions"]
    phases = [execution[name] for name in ("started", "input_done", "infer_done", "output_done")]
    times = [report["received"], report["queued"], *phases, report["answered"], report["encoded"]]
    return times == sorted(times) and times[0] == 0 < times[-1] < 60e6


@pytest.mark.parametrize("by_header", [False, True])
def test_a_request_over_http_gets_its_timeline(serving: Running, by_header: bool) -> None:
    headers = {"naiad-explain": "1"} if by_header else {}
    body = ROW if by_header else ROW | {"parameters": {"naiad_explain": True}}

    document = serving.ask("POST", "/v2/models/add/infer", body, headers).document

    report = _report(document)
    assert document["outputs"][0]["data"] == [2]
    assert (report["model"], report["version"], report["executions"][0]["instance"]) == ("add", 1, "add_0")
    assert _in_order(report)


def test_the_client_library_gets_it_over_both_protocols(serving: Running) -> None:
    with serving.client() as client:
        tensor = tritonclient.http.InferInput("x", [1, 1], "FP32")
        tensor.set_data_from_numpy(np.array([[1]], dtype=np.float32))
        over_http = client.infer("add", [tensor], parameters={"naiad_explain": True}).get_response()
    with _grpc(serving) as client:
        response = client.infer("add", [_input(1)], parameters={"naiad_explain": True}).get_response()
        metadata = client.infer("add", [_input(1)], headers={"naiad-explain": "1"}).get_response()
        silent = client.infer("add", [_input(1)]).get_response()

    assert _in_order(_report(over_http))
    assert _in_order(json.loads(response.parameters["naiad_explain"].string_param))
    assert _in_order(json.loads(metadata.parameters["naiad_explain"].string_param))
    assert "naiad_explain" not in silent.parameters


def test_the_last_message_of_a_stream_has_it(serving: Running) -> None:
    results: SimpleQueue[Any] = SimpleQueue()
    tensor = tritonclient.grpc.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.array([3], dtype=np.float32))
    with _grpc(serving) as client:
        client.start_stream(lambda result, error: results.put(result or error))
        client.async_stream_infer("count", [tensor], parameters={"naiad_explain": True})
        messages = [results.get(timeout=30).get_response() for _ in range(4)]
        client.stop_stream()

    assert [len(message.outputs) for message in messages] == [1, 1, 1, 0]
    assert ["naiad_explain" in message.parameters for message in messages] == [False, False, False, True]
    report = json.loads(messages[-1].parameters["naiad_explain"].string_param)
    assert (report["responses"]["count"], report["model"]) == (3, "count")


def test_the_last_event_of_generate_has_it(serving: Running) -> None:
    events = serving.ask("POST", "/v2/models/count/generate_stream", {"x": 2, "naiad_explain": True})
    one = serving.ask("POST", "/v2/models/count/generate", {"x": 1, "naiad_explain": True})

    documents = [json.loads(line.removeprefix("data: ")) for line in events.body.decode().split("\n\n") if line]
    assert ["naiad_explain" in document for document in documents] == [False, False, True]
    assert json.loads(documents[-1]["naiad_explain"])["responses"]["count"] == 2
    assert (one.document["output"], json.loads(one.document["naiad_explain"])["model"]) == (1, "count")


def test_the_command_draws_it(serving: Running) -> None:
    words = ["infer", "add", "--url", serving.url, "--input", "x=1", "--explain"]

    ran = run_forked(words)

    lines = [line.split("\t") for line in ran.stdout.splitlines()]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert lines[2] == ["[[2.]]"]
    assert [line[0] for line in lines[3:]] == [
        "Phase",
        "take in",
        "wait",
        "input",
        "infer",
        "output",
        "answer",
        "encode",
    ]
    assert lines[5][3].startswith("1 item of 1 request: ")


def test_the_command_tells_the_phases_of_steps_apart(serving: Running) -> None:
    words = ["infer", "composed", "--url", serving.url, "--input", "x=123", "--explain"]

    ran = run_forked(words)

    names = [line.split("\t")[0] for line in ran.stdout.splitlines()]
    assert [name for name in names if name.endswith("wait")] == ["add/wait", "cached/wait"]

"""Timelines of single requests, through every way in which a client can ask for one."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from . import explained, models
from .asking import ROW
from .conftest import Start, ending_well
from .running import NAIAD, Running


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of models that have something to tell."""
    folder = tmp_path_factory.mktemp("explaining")
    repository = folder / "models"
    explained.write_all(repository)
    words = ("--cache-config=local,size=1048576", "--allow-explain")
    with ending_well(Running(repository, folder / "log", *words)) as running:
        yield running


def _asked(running: Running, model: str, **how: Any) -> dict[str, Any]:
    """The answer to a request that asks for an explanation in its JSON."""
    parameters = {"parameters": {"explain": True}}
    answer = running.ask("POST", f"/v2/models/{model}/infer", ROW | parameters | how)
    assert answer.status == 200, answer.error
    document: dict[str, Any] = answer.document
    return document


def _told(document: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(document["parameters"]["explain"])
    return told


def _grpc(running: Running) -> tritonclient.grpc.InferenceServerClient:
    return tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{running.grpc_port}")


def _input(*values: float) -> tritonclient.grpc.InferInput:
    array = np.array(values, dtype=np.float32).reshape(-1, 1)
    given = tritonclient.grpc.InferInput("x", list(array.shape), "FP32")
    given.set_data_from_numpy(array)
    return given


def _in_order(told: dict[str, Any]) -> bool:
    """Whether the times follow each other as what happened did."""
    (execution,) = told["executions"]
    phases = [execution[name] for name in ("started", "input_done", "infer_done", "output_done")]
    times = [told["received"], told["queued"], *phases, told["answered"], told["encoded"]]
    return times == sorted(times) and times[0] == 0 < times[-1] < 60e6


@pytest.mark.parametrize("by_header", [False, True])
def test_a_request_over_http_gets_its_timeline(serving: Running, by_header: bool) -> None:
    headers = {"naiad-explain": "1"} if by_header else {}
    body = ROW if by_header else ROW | {"parameters": {"explain": True}}

    document = serving.ask("POST", "/v2/models/add/infer", body, headers).document

    told = _told(document)
    assert document["outputs"][0]["data"] == [2]
    assert (told["model"], told["version"], told["executions"][0]["instance"]) == ("add", 1, "add_0")
    assert _in_order(told)


def test_the_client_library_gets_it_over_both_protocols(serving: Running) -> None:
    with serving.client() as client:
        given = tritonclient.http.InferInput("x", [1, 1], "FP32")
        given.set_data_from_numpy(np.array([[1]], dtype=np.float32))
        over_http = client.infer("add", [given], parameters={"explain": True}).get_response()
    with _grpc(serving) as client:
        asked = client.infer("add", [_input(1)], parameters={"explain": True}).get_response()
        metadata = client.infer("add", [_input(1)], headers={"naiad-explain": "1"}).get_response()
        silent = client.infer("add", [_input(1)]).get_response()

    assert _in_order(_told(over_http))
    assert _in_order(json.loads(asked.parameters["explain"].string_param))
    assert _in_order(json.loads(metadata.parameters["explain"].string_param))
    assert "explain" not in silent.parameters


def test_it_names_the_batch_that_the_request_joined(serving: Running) -> None:
    results: SimpleQueue[Any] = SimpleQueue()
    with _grpc(serving) as client:
        client.async_infer("pairs", [_input(1)], lambda result, error: results.put(result or error))
        document = _asked(serving, "pairs")
        results.get(timeout=30)

    (execution,) = _told(document)["executions"]
    assert (execution["batch_size"], execution["requests"], execution["closed"]) == (2, 2, "preferred size")


def test_the_steps_of_an_ensemble_are_told_and_hits_of_the_cache(serving: Running) -> None:
    first, second = (_told(_asked(serving, "composed")) for _ in range(2))

    assert [(step["model"], step.get("cache")) for step in first["steps"]] == [("add", None), ("cached", "miss")]
    assert [step.get("cache") for step in second["steps"]] == [None, "hit"]
    assert first["steps"][0]["answered"] <= first["steps"][1]["queued"] <= first["answered"]
    assert "executions" not in second["steps"][1]
    assert "executions" not in second


def test_a_hit_of_the_cache_is_told(serving: Running) -> None:
    given = {"inputs": [ROW["inputs"][0] | {"data": [77]}]}

    kept, found = (_told(_asked(serving, "cached", **given)) for _ in range(2))
    silent = serving.ask("POST", "/v2/models/cached/infer", ROW | given).document

    assert (kept["cache"], found["cache"]) == ("miss", "hit")
    assert ("executions" in kept, "executions" in found) == (True, False)
    assert "parameters" not in silent


def test_requests_that_a_model_makes_are_steps(serving: Running) -> None:
    told = _told(_asked(serving, "calls"))

    (step,) = told["steps"]
    assert (step["model"], step["executions"][0]["instance"]) == ("add", "add_0")
    (execution,) = told["executions"]
    assert execution["started"] <= step["queued"] <= step["answered"] <= execution["output_done"]


def test_a_request_of_a_sequence_is_explained(serving: Running) -> None:
    sequence = {"sequence_id": 7, "sequence_start": True, "sequence_end": True, "explain": True}

    told = _told(_asked(serving, "sums", parameters=sequence))

    assert told["executions"][0]["instance"] == "sums_0"


def test_every_execution_of_a_request_that_the_model_asked_for_once_more_is_told(serving: Running) -> None:
    first, second = _told(_asked(serving, "again"))["executions"]

    assert first["output_done"] <= second["started"] <= second["output_done"]


def test_models_do_not_see_that_they_are_watched(serving: Running) -> None:
    document = serving.ask(
        "POST",
        "/v2/models/sees/infer",
        {**ROW, "inputs": [ROW["inputs"][0] | {"shape": [1]}], "parameters": {"explain": True, "k": 5}},
    ).document

    assert json.loads(document["parameters"]["seen"]) == {"k": 5}
    assert _told(document)["model"] == "sees"


def test_the_last_message_of_a_stream_has_it(serving: Running) -> None:
    results: SimpleQueue[Any] = SimpleQueue()
    given = tritonclient.grpc.InferInput("x", [1], "FP32")
    given.set_data_from_numpy(np.array([3], dtype=np.float32))
    with _grpc(serving) as client:
        client.start_stream(lambda result, error: results.put(result or error))
        client.async_stream_infer("count", [given], parameters={"explain": True})
        messages = [results.get(timeout=30).get_response() for _ in range(4)]
        client.stop_stream()

    assert [len(message.outputs) for message in messages] == [1, 1, 1, 0]
    assert ["explain" in message.parameters for message in messages] == [False, False, False, True]
    told = json.loads(messages[-1].parameters["explain"].string_param)
    assert (told["responses"]["count"], told["model"]) == (3, "count")


def test_the_last_event_of_generate_has_it(serving: Running) -> None:
    events = serving.ask("POST", "/v2/models/count/generate_stream", {"x": 2, "explain": True})
    one = serving.ask("POST", "/v2/models/count/generate", {"x": 1, "explain": True})

    documents = [json.loads(line.removeprefix("data: ")) for line in events.body.decode().split("\n\n") if line]
    assert ["explain" in document for document in documents] == [False, False, True]
    assert json.loads(documents[-1]["explain"])["responses"]["count"] == 2
    assert (one.document["output"], json.loads(one.document["explain"])["model"]) == (1, "count")


def test_a_refused_request_is_refused_as_ever(serving: Running) -> None:
    answer = serving.ask("POST", "/v2/models/add/infer", {"inputs": [], "parameters": {"explain": True}})

    assert (answer.status, list(answer.document)) == (400, ["error"])


def test_the_command_draws_it(serving: Running) -> None:
    words = [NAIAD, "infer", "add", "--url", serving.url, "--input", "x=1", "--explain"]

    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)

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
    words = [NAIAD, "infer", "composed", "--url", serving.url, "--input", "x=123", "--explain"]

    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)

    names = [line.split("\t")[0] for line in ran.stdout.splitlines()]
    assert [name for name in names if name.endswith("wait")] == ["add/wait", "cached/wait"]


def test_a_server_keeps_it_to_itself_unless_it_is_allowed_and_traces_all_the_same(start: Start, tmp_path: Path) -> None:
    models.write(tmp_path / "models", "add", explained.ADD)
    models.write(tmp_path / "models", "echo", models.ECHO)
    silent = start()
    traced = start(
        "--allow-explain",
        f"--trace-config=triton,file={tmp_path / 'traces'}",
        "--trace-config=rate=1",
        "--trace-config=level=TIMESTAMPS",
    )

    kept = silent.ask("POST", "/v2/models/add/infer", ROW | {"parameters": {"explain": True}}).document
    given = traced.ask("POST", "/v2/models/add/infer", ROW | {"parameters": {"explain": True}}).document
    traced.stop()

    assert "parameters" not in kept
    assert _in_order(_told(given))
    events = [
        each["name"] for entry in json.loads((tmp_path / "traces").read_text()) for each in entry.get("timestamps", ())
    ]
    assert {"HTTP_RECV_START", "QUEUE_START", "COMPUTE_END", "HTTP_SEND_END"} <= set(events)

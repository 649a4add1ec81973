"""Traces of a whole server: in files and as spans, with the settings changed while it runs."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from . import models
from .collecting import collecting
from .conftest import Start
from .running import Running, until

KERNEL = [
    "REQUEST_START",
    "QUEUE_START",
    "COMPUTE_START",
    "COMPUTE_INPUT_END",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_END",
    "INFER_RESPONSE_COMPLETE",
    "REQUEST_END",
]
OVER_HTTP = ["HTTP_RECV_START", "HTTP_RECV_END", *KERNEL, "HTTP_SEND_START", "HTTP_SEND_END"]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

SPANNING = """
from naiad_custom import FP32, Array, model
from opentelemetry import trace

@model
def spanning(x: Array[FP32, -1]) -> Array[FP32, -1]:
    trace.get_current_span().set_attribute("elements", len(x))
    return x
"""

BROKEN = """
from naiad_custom import FP32, Array, model

@model
def broken(x: Array[FP32, -1]) -> Array[FP32, -1]:
    raise ValueError("as it was asked to")
"""


def tracing(path: Path, *words: str) -> list[str]:
    """The options that trace every request into that file."""
    settings = ("rate=1", "level=TIMESTAMPS", f"triton,file={path}", *words)
    return [f"--trace-config={setting}" for setting in settings]


def traces(path: Path) -> dict[int, list[dict[str, Any]]]:
    """The objects of each trace of a file."""
    found: dict[int, list[dict[str, Any]]] = {}
    for each in json.loads(path.read_text()):
        found.setdefault(each["id"], []).append(each)
    return found


def events(objects: list[dict[str, Any]]) -> list[str]:
    return [stamp["name"] for each in objects for stamp in each.get("timestamps", ())]


def change(running: Running, settings: dict[str, Any], model: str = "") -> dict[str, Any]:
    path = f"/v2/models/{model}/trace/setting" if model else "/v2/trace/setting"
    answer = running.ask("POST", path, settings)
    assert answer.status == 200, answer.body
    changed: dict[str, Any] = answer.document
    return changed


@pytest.fixture
def both(repository: Path) -> Path:
    """A repository with the models `echo` and `other`."""
    models.write(repository, "other", models.ECHO.replace("echo", "other"))
    return repository


def test_a_file_tells_all_of_every_request_when_the_server_has_ended(
    start: Start, repository: Path, tmp_path: Path
) -> None:
    running = start(*tracing(tmp_path / "t.json"))
    for number in range(1, 4):
        assert running.infer("echo", 1, id=f"r{number}").status == 200
    running.stop()

    found = traces(tmp_path / "t.json")

    assert [objects[0] for objects in found.values()] == [
        {"id": number, "model_name": "echo", "model_version": 1, "request_id": f"r{number}"} for number in range(1, 4)
    ]
    for objects in found.values():
        times = [each["timestamps"][0]["ns"] for each in objects[1:]]
        assert events(objects) == OVER_HTTP
        assert times == sorted(times)


def test_tensors_are_told_as_they_came_and_went(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*tracing(tmp_path / "t.json", "level=TENSORS"))
    assert running.infer("echo", 1.5, -2).status == 200
    running.stop()

    ((*objects,),) = traces(tmp_path / "t.json").values()

    seen = {each["activity"]: each["tensor"] for each in objects if "activity" in each}
    assert {activity: (each["data"], each["shape"], each["dtype"]) for activity, each in seen.items()} == {
        "TENSOR_QUEUE_INPUT": ("1.5,-2", "2", "FP32"),
        "TENSOR_BACKEND_OUTPUT": ("1.5,-2", "2", "FP32"),
    }
    assert events(objects) == OVER_HTTP


def test_requests_that_fail_are_told_to_their_end(start: Start, both: Path, tmp_path: Path) -> None:
    models.write(both, "broken", BROKEN)
    running = start(*tracing(tmp_path / "t.json"))
    assert running.infer("broken", 1).status == 500
    assert running.ask("POST", "/v2/models/echo/infer", {"inputs": []}).status == 400
    running.stop()

    failed, refused = traces(tmp_path / "t.json").values()

    assert events(failed) == OVER_HTTP
    assert events(refused) == ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"]


def test_settings_of_a_model_are_its_own(start: Start, both: Path, tmp_path: Path) -> None:
    running = start(*tracing(tmp_path / "t.json", "rate=0"))

    with running.client() as client:
        client.update_trace_settings("other", {"trace_rate": "2", "trace_count": "1"})
        for _ in range(4):
            running.infer("echo", 1)
            running.infer("other", 1)
        told = client.get_trace_settings("other")
        cleared = client.update_trace_settings("other", {"trace_rate": None, "trace_count": None})
    running.stop()

    assert [objects[0]["model_name"] for objects in traces(tmp_path / "t.json").values()] == ["other"]
    assert (told["trace_rate"], told["trace_count"]) == ("2", "0")
    assert (cleared["trace_rate"], cleared["trace_count"]) == ("0", "-1")


def test_a_running_server_begins_and_ends_to_trace(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(f"--trace-config=triton,file={tmp_path / 't.json'}", "--trace-config=rate=1")

    for level in (["OFF"], ["TIMESTAMPS"], None):
        change(running, {"trace_level": level})
        running.infer("echo", 1, id=str(level))
    running.stop()

    assert [objects[0]["request_id"] for objects in traces(tmp_path / "t.json").values()] == ["['TIMESTAMPS']"]


def test_a_frequency_makes_many_files(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*tracing(tmp_path / "t.json", "triton,log-frequency=2"))
    for _ in range(3):
        running.infer("echo", 1)
    running.stop()

    assert list(traces(tmp_path / "t.json.0")) == [1, 2]
    assert list(traces(tmp_path / "t.json.1")) == [3]


def test_a_file_is_valid_when_the_server_is_killed(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*tracing(tmp_path / "t.json"))
    running.infer("echo", 1)

    until(lambda: traces(tmp_path / "t.json"))
    running.kill()

    assert events(traces(tmp_path / "t.json")[1]) == OVER_HTTP


def test_a_full_disk_loses_traces_and_no_requests(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*tracing(tmp_path / "t.json", "level=TENSORS"))
    running.infer("echo", 1)
    until(lambda: traces(tmp_path / "t.json"))

    _, most = resource.prlimit(running.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (10_000, most))
    assert running.infer("echo", *range(10_000)).status == 200
    until(lambda: "are lost until they can" in running.log)
    between = traces(tmp_path / "t.json")
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (most, most))
    assert running.infer("echo", 1).status == 200
    running.stop()

    assert list(between) == [1]
    assert list(traces(tmp_path / "t.json")) == [1, 3]


def test_a_file_that_cannot_be_written_ends_the_server_at_once(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*tracing(tmp_path / "none" / "t.json"))

    status = running.exit_status()

    assert status == 1
    assert "t.json cannot be written: No such file or directory" in running.log
    assert "Traceback" not in running.log


def test_older_options_still_trace(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(f"--trace-file={tmp_path / 't.json'}", "--trace-level=TIMESTAMPS", "--trace-rate=1")
    running.infer("echo", 1)
    running.stop()

    assert list(traces(tmp_path / "t.json")) == [1]
    assert "--trace-file is deprecated; write --trace-config triton,file=" in running.log


def test_compressed_requests_are_traced_too(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*tracing(tmp_path / "t.json"))
    assert running.infer("echo", 1, headers={"Accept-Encoding": "gzip"}).status == 200
    running.stop()

    assert events(traces(tmp_path / "t.json")[1]) == OVER_HTTP


def test_spans_go_to_the_collector_below_the_caller_s(start: Start, repository: Path) -> None:
    models.write(repository, "spanning", SPANNING)
    with collecting() as collector:
        running = start(
            "--trace-config=mode=opentelemetry",
            "--trace-config=level=TIMESTAMPS",
            "--trace-config=rate=0",
            f"--trace-config=opentelemetry,url={collector.url}",
        )
        assert running.infer("spanning", 1, 2, 3, id="r").status == 200
        headers = {"traceparent": PARENT, "tracestate": "vendor=x"}
        assert running.infer("spanning", 1, 2, 3, id="s", headers=headers).status == 200
        running.stop()

    _, trace_id, span_id, _ = PARENT.split("-")
    assert collector.parents() == {
        "InferRequest": span_id,
        "spanning": "InferRequest",
        "queue": "spanning",
        "compute": "spanning",
        "compute_input": "compute",
        "compute_infer": "compute",
        "compute_output": "compute",
    }
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id}
    assert [event.name for event in collector.named("InferRequest").events] == [
        name for name in OVER_HTTP if name.startswith(("HTTP", "INFER"))
    ]
    (attribute,) = collector.named("compute").attributes
    assert (attribute.key, attribute.value.int_value) == ("elements", 3)

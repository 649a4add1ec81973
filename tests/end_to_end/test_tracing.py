"""Traces of a whole server: in files and as spans, with the settings changed while it runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from . import models
from .asking import ONE
from .collecting import collecting
from .conftest import Start
from .running import Running

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
SERVER, UNSET, ERROR = Span.SPAN_KIND_SERVER, Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR
EXPORTS = tuple(f"--trace-config={setting}" for setting in ("mode=opentelemetry", "level=TIMESTAMPS", "rate=1"))
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

FAILS = """
from naiad_custom import FP32, Array, model

@model
def fails(x: Array[FP32, -1]) -> Array[FP32, -1]:
    raise ValueError("as it was asked to")
"""
SPANNING = """
from naiad_custom import FP32, Array, model
from opentelemetry import trace

@model
def spanning(x: Array[FP32, -1]) -> Array[FP32, -1]:
    trace.get_current_span().set_attribute("elements", len(x))
    return x
"""


def tracing(path: Path, *words: str) -> list[str]:
    """The options that trace every request into that file."""
    settings = ("rate=1", "level=TIMESTAMPS", f"triton,file={path}", *words)
    return [f"--trace-config={setting}" for setting in settings]


def traces(path: Path) -> dict[int, list[dict[str, Any]]]:
    """The objects of each trace of a file."""
    results: dict[int, list[dict[str, Any]]] = {}
    for each in json.loads(path.read_text()):
        results.setdefault(each["id"], []).append(each)
    return results


def events(objects: list[dict[str, Any]]) -> list[str]:
    return [stamp["name"] for each in objects for stamp in each.get("timestamps", ())]


def change(running: Running, settings: dict[str, Any], model: str = "") -> dict[str, Any]:
    path = f"/v2/models/{model}/trace/setting" if model else "/v2/trace/setting"
    answer = running.ask("POST", path, settings)
    assert answer.status == 200, answer.body
    changed: dict[str, Any] = answer.document
    return changed


def test_a_file_tells_all_of_every_request_when_the_server_has_ended(
    start: Start, repository: Path, tmp_path: Path
) -> None:
    running = start(*tracing(tmp_path / "t.json"))
    for number in range(1, 4):
        assert running.infer("echo", 1, id=f"r{number}").status == 200
    running.stop()

    result = traces(tmp_path / "t.json")

    assert [objects[0] for objects in result.values()] == [
        {"id": number, "model_name": "echo", "model_version": 1, "request_id": f"r{number}"} for number in range(1, 4)
    ]
    for objects in result.values():
        times = [each["timestamps"][0]["ns"] for each in objects[1:]]
        assert events(objects) == OVER_HTTP
        assert times == sorted(times)


def test_a_running_server_begins_and_ends_to_trace(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(f"--trace-config=triton,file={tmp_path / 't.json'}", "--trace-config=rate=1")

    for level in (["OFF"], ["TIMESTAMPS"], None):
        change(running, {"trace_level": level})
        running.infer("echo", 1, id=str(level))
    running.stop()

    assert [objects[0]["request_id"] for objects in traces(tmp_path / "t.json").values()] == ["['TIMESTAMPS']"]


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


@pytest.mark.parametrize(
    ("path", "body", "more", "expected"),
    [
        ("/v2/models/echo/infer", ONE, {}, {"http.route": "/v2/models/{model_name}/infer"}),
        (
            "/v2/models/echo/versions/1/infer?a=b",
            ONE,
            {"Accept-Encoding": "gzip"},
            {"http.route": "/v2/models/{model_name}/versions/{model_version}/infer", "url.query": "a=b"},
        ),
        ("/v2/models/echo/generate", {"x": [1]}, {}, {"http.route": "/v2/models/{model_name}/generate"}),
        (
            "/v2/models/fails/infer",
            ONE,
            {},
            {"http.route": "/v2/models/{model_name}/infer", "http.response.status_code": 500, "error.type": "500"},
        ),
    ],
)
def test_the_span_of_a_request_has_the_attributes_of_the_semantic_conventions(
    start: Start, repository: Path, path: str, body: dict[str, Any], more: dict[str, str], expected: dict[str, Any]
) -> None:
    models.write(repository, "fails", FAILS)
    with collecting() as collector:
        running = start(*EXPORTS, f"--trace-config=opentelemetry,url={collector.url}")
        running.ask("POST", path, body, {"User-Agent": "test/1", "Host": "models.example:8000", **more})
        running.stop()

    span = collector.named("InferRequest")
    assert collector.attributes("InferRequest") == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "url.path": path.partition("?")[0],
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "server.address": "models.example",
        "server.port": 8000,
        "client.address": "127.0.0.1",
        "user_agent.original": "test/1",
        **expected,
    }
    assert (span.kind, span.status.code) == (SERVER, ERROR if "error.type" in expected else UNSET)
    assert collector.resource["service.name"] == "naiad"

"""Traces that are exported as spans, to a real collector."""

import json
from collections.abc import Iterator
from time import monotonic_ns, time_ns

import pytest
from opentelemetry import trace as api

from naiad.errors import ModelFailedError, NaiadError, RequestCancelledError
from naiad.types import Response
from naiad_tracing.options import TraceOptions
from naiad_tracing.recording import Subject
from naiad_tracing.sampling import Sampler
from naiad_tracing.selection import Selection
from naiad_tracing.span_recording import SpanRecording
from naiad_tracing.spans import SpanTrace

from .collector import Collector, collecting

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
KERNEL_EVENTS = (
    "REQUEST_START",
    "QUEUE_START",
    "COMPUTE_START",
    "COMPUTE_INPUT_END",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_END",
    "REQUEST_END",
)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture
def recording(collector: Collector) -> SpanRecording:
    return SpanRecording(TraceOptions("opentelemetry", url=collector.url))


def begin(recording: SpanRecording, traceparent: str = "", tracestate: str = "", request_id: str = "r") -> SpanTrace:
    """A trace of a request to version 1 of the model m."""
    caller = recording.caller(traceparent, tracestate) if traceparent else None
    trace = recording.begin(Subject("m", 0, request_id), Sampler(Selection(("TIMESTAMPS",))), caller)
    trace.version = 1
    return trace


def record_all(trace: SpanTrace, start: int) -> None:
    """Every event of a request over HTTP, one each nanosecond from `start` on."""
    for later, event in enumerate(("HTTP_RECV_START", "HTTP_RECV_END", *KERNEL_EVENTS, "HTTP_SEND_END")):
        trace.record(event, start + later)
    trace.end()


def test_a_request_is_a_tree_of_spans(recording: SpanRecording, collector: Collector) -> None:
    record_all(begin(recording), monotonic_ns())
    recording.close(10)

    root = collector.named("InferRequest")
    model, compute = collector.named("m"), collector.named("compute")
    parents = {span.name: span.parent_id for span in collector.spans}
    assert parents == {
        "InferRequest": "",
        "m": root.span_id,
        "queue": model.span_id,
        "compute": model.span_id,
        "compute_input": compute.span_id,
        "compute_infer": compute.span_id,
        "compute_output": compute.span_id,
    }
    assert {span.trace_id for span in collector.spans} == {root.trace_id}


def test_spans_last_from_event_to_event(recording: SpanRecording, collector: Collector) -> None:
    start = monotonic_ns()

    record_all(begin(recording), start)
    recording.close(10)

    base = collector.named("InferRequest").start
    assert {span.name: (span.start - base, span.end - base) for span in collector.spans[:-1]} == {
        "m": (2, 8),
        "queue": (3, 4),
        "compute": (4, 7),
        "compute_input": (4, 5),
        "compute_infer": (5, 6),
        "compute_output": (6, 7),
    }
    assert abs(base - time_ns()) < 60e9


def test_events_stand_on_the_span_that_they_concern(recording: SpanRecording, collector: Collector) -> None:
    record_all(begin(recording), monotonic_ns())
    recording.close(10)

    assert collector.named("InferRequest").event_names == ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_END"]
    assert collector.named("m").event_names == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
    assert collector.named("compute").event_names == [
        "COMPUTE_START",
        "COMPUTE_INPUT_END",
        "COMPUTE_OUTPUT_START",
        "COMPUTE_END",
    ]


def test_the_span_of_a_request_is_that_of_a_server_and_has_the_attributes_of_its_protocol(
    recording: SpanRecording, collector: Collector
) -> None:
    trace = begin(recording)
    trace.record("HTTP_RECV_START")
    trace.add_attributes({"http.request.method": "POST"})
    trace.add_attributes({"http.response.status_code": 404})
    record_all(trace, monotonic_ns())
    trace.add_attributes({"late": 1})
    recording.close(10)

    root = collector.named("InferRequest")
    assert root.attributes == {"http.request.method": "POST", "http.response.status_code": 404}
    assert {span.name: span.kind for span in collector.spans if span.kind != "INTERNAL"} == {"InferRequest": "SERVER"}
    assert root.status == "UNSET"


def test_an_error_type_makes_the_span_an_error(recording: SpanRecording, collector: Collector) -> None:
    trace = begin(recording)
    trace.record("HTTP_RECV_START")
    trace.add_attributes({"http.response.status_code": 500, "error.type": "500"})
    trace.end()
    recording.close(10)

    assert collector.named("InferRequest").status == "ERROR"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Response("m", 1, "r", {}, error=ModelFailedError("no luck")), ("ERROR", "ModelFailedError")),
        (ModelFailedError("no luck"), ("ERROR", "ModelFailedError")),
        (RequestCancelledError("the caller left"), ("UNSET", None)),
        (Response("m", 1, "r", {}), ("UNSET", None)),
    ],
)
def test_the_span_of_a_model_that_failed_is_an_error(
    recording: SpanRecording, collector: Collector, outcome: Response | NaiadError, status: tuple[str, str | None]
) -> None:
    trace = begin(recording)
    trace.record("REQUEST_START")
    trace.responded(outcome)
    record_all(trace, monotonic_ns())
    recording.close(10)

    span = collector.named("m")
    assert (span.status, span.attributes.get("error.type")) == status


def test_the_model_s_span_says_which_request_it_is(recording: SpanRecording, collector: Collector) -> None:
    for request_id in ("r", ""):
        record_all(begin(recording, request_id=request_id), monotonic_ns())
    recording.close(10)

    first, second = (span.attributes for span in collector.spans if span.name == "m")
    assert first == {
        "triton.model_name": "m",
        "triton.model_version": 1,
        "triton.trace_id": 1,
        "triton.trace_parent_id": 0,
        "triton.request_id": "r",
    }
    assert (second["triton.trace_id"], second["triton.request_id"]) == (2, "n/a")


def test_the_caller_s_context_is_taken_over(recording: SpanRecording, collector: Collector) -> None:
    trace = begin(recording, PARENT, "vendor=x")
    headers = json.loads(trace.context())
    trace.end()
    recording.close(10)

    root = collector.named("InferRequest")
    assert (root.trace_id, root.parent_id, root.trace_state) == (TRACE, SPAN, "vendor=x")
    assert headers == {"traceparent": f"00-{TRACE}-{root.span_id}-01", "tracestate": "vendor=x"}


@pytest.mark.parametrize(
    ("traceparent", "samples"),
    [(PARENT, True), (PARENT[:-1] + "0", False), ("00-zz", None), (f"00-{'0' * 32}-{SPAN}-01", None)],
)
def test_a_caller_may_sample_or_not_or_be_none(
    recording: SpanRecording, traceparent: str, samples: bool | None
) -> None:
    caller = recording.caller(traceparent, "")
    recording.close(10)

    assert (caller.samples if caller else None) is samples


def test_a_request_of_a_caller_that_does_not_sample_is_exported_when_it_is_traced(
    recording: SpanRecording, collector: Collector
) -> None:
    begin(recording, PARENT[:-1] + "0").end()
    recording.close(10)

    assert collector.named("InferRequest").trace_id == TRACE


def test_the_innermost_span_is_current_for_a_model(recording: SpanRecording, collector: Collector) -> None:
    trace = begin(recording)
    for event in KERNEL_EVENTS[:3]:
        trace.record(event)
    with trace.current():
        api.get_current_span().set_attribute("mine", 7)
        inside = api.get_current_span().get_span_context().span_id
    outside = api.get_current_span().get_span_context().is_valid
    trace.end()
    recording.close(10)

    compute = collector.named("compute")
    assert (compute.span_id, compute.attributes, outside) == (f"{inside:016x}", {"mine": 7}, False)


def test_a_model_s_context_names_its_innermost_span(recording: SpanRecording, collector: Collector) -> None:
    trace = begin(recording)
    recorded = []
    for event in ("REQUEST_START", "COMPUTE_START", "COMPUTE_END", "REQUEST_END"):
        trace.record(event)
        recorded.append(json.loads(trace.context())["traceparent"].split("-")[2])
    trace.end()
    recording.close(10)

    model, compute, root = (collector.named(name).span_id for name in ("m", "compute", "InferRequest"))
    assert recorded == [model, compute, model, root]


def test_what_a_request_causes_is_below_its_innermost_span(recording: SpanRecording, collector: Collector) -> None:
    trace = begin(recording)
    trace.record("REQUEST_START")
    trace.record("COMPUTE_START")
    step = trace.child("step", 1, "s")
    step.record("REQUEST_START")
    step.record("INFER_RESPONSE_COMPLETE")
    step.end()
    trace.end()
    recording.close(10)

    result = collector.named("step")
    assert result.parent_id == collector.named("compute").span_id
    assert (result.attributes["triton.trace_id"], result.attributes["triton.trace_parent_id"]) == (2, 1)
    assert [span.name for span in collector.spans].count("InferRequest") == 1


def test_a_request_that_ends_early_ends_its_spans(recording: SpanRecording, collector: Collector) -> None:
    trace = begin(recording)
    for event in ("HTTP_RECV_START", "REQUEST_START", "QUEUE_START"):
        trace.record(event)
    trace.end()
    trace.record("COMPUTE_START")
    trace.end()
    recording.close(10)

    assert sorted(span.name for span in collector.spans) == ["InferRequest", "m", "queue"]
    assert all(span.end >= span.start for span in collector.spans)


def test_a_context_may_be_asked_for_after_the_end(recording: SpanRecording, collector: Collector) -> None:
    trace = begin(recording)
    trace.end()
    traceparent = json.loads(trace.context())["traceparent"]
    recording.close(10)

    assert traceparent.split("-")[2] == collector.named("InferRequest").span_id


@pytest.mark.parametrize(
    ("value", "environment", "expected"),
    [
        ((), "", {"service.name": "naiad"}),
        ((), "service.name=mesh,zone=a", {"service.name": "mesh", "zone": "a"}),
        (("service.name=vision", "zone=b=c"), "service.name=mesh", {"service.name": "vision", "zone": "b=c"}),
    ],
)
def test_the_resource_is_the_service(
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    value: tuple[str, ...],
    environment: str,
    expected: dict[str, str],
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", environment)
    recording = SpanRecording(TraceOptions("opentelemetry", url=collector.url, resource=value))

    begin(recording).end()
    recording.close(10)

    assert expected.items() <= collector.resource.items()


def test_a_collector_that_hangs_is_not_waited_for_longer_than_asked(
    recording: SpanRecording, collector: Collector
) -> None:
    collector.open.clear()
    begin(recording).end()

    ended = recording.close(0.01)

    collector.open.set()
    assert not ended

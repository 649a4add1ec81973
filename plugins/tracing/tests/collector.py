"""A collector of OpenTelemetry traces for tests: a real HTTP server that takes what the OTLP exporter sends."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


@dataclass
class SpanRow:
    """An exported span as tests look at it; ids are in hexadecimal, as in the headers."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[tuple[str, int]]
    trace_state: str
    kind: str
    status: str

    @property
    def event_names(self) -> list[str]:
        return [name for name, _ in self.events]


@dataclass
class Collector:
    """What came; `url` is where to export to. It answers while it is `open`."""

    url: str = ""
    spans: list[SpanRow] = field(default_factory=list)
    resource: dict[str, Any] = field(default_factory=dict)
    open: Event = field(default_factory=Event)

    def named(self, name: str) -> SpanRow:
        """The only span of that name."""
        (results,) = [span for span in self.spans if span.name == name]
        return results

    def take(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource.update(_attributes(group.resource.attributes))
            for scope in group.scope_spans:
                self.spans += [_row(span) for span in scope.spans]


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens while the block runs."""
    collector = Collector()
    collector.open.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            collector.open.wait(10)
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _row(span: Any) -> SpanRow:
    return SpanRow(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _attributes(span.attributes),
        [(event.name, event.time_unix_nano) for event in span.events],
        span.trace_state,
        Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
    )


def _attributes(pairs: Sequence[Any]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}

"""A collector of OpenTelemetry traces: a real HTTP server that takes what a server process exports."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """The spans that came, as OTLP has them; `url` is where to export to."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Any] = []
        self.resource: dict[str, str] = {}

    def take(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource |= {pair.key: pair.value.string_value for pair in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> Any:
        """The only span of that name."""
        (results,) = [span for span in self.spans if span.name == name]
        return results

    def attributes(self, name: str) -> dict[str, Any]:
        """The attributes of the only span of that name."""
        pairs = self.named(name).attributes
        return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}

    def parents(self) -> dict[str, str]:
        """The name of each span's parent; the id where the parent is not here."""
        names = {span.span_id: span.name for span in self.spans}
        return {span.name: names.get(span.parent_span_id, span.parent_span_id.hex()) for span in self.spans}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        collector = Collector(f"http://127.0.0.1:{listening.server_address[1]}/v1/traces")
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield collector
        finally:
            listening.shutdown()
            thread.join()

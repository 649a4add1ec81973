"""Trace events of the HTTP frontend: receive and send of requests to models. Only used while `Tracing.active`."""

from collections.abc import Callable
from time import monotonic_ns
from types import TracebackType
from urllib.parse import urlsplit

from starlette.types import Message, Scope, Send

from naiad.types import Request, Trace
from naiad_http.codec.request_head import RequestHead
from naiad_http.cycles import TRACE
from naiad_kit.tracing import Attributes, Tracing, add_attributes


def begin_trace(
    tracing: Tracing,
    request: Request,
    request_head: RequestHead,
    scope: Callable[[], Scope],
    began_ns: int,
    received_ns: int,
) -> Trace | None:
    """The trace of a request if it is sampled; its first and last byte arrived at these `time.monotonic_ns()`.

    `scope` gives the ASGI scope of the request.
    """
    trace = tracing.sample(
        request.model_name, request.version, request.id, request_head.traceparent, request_head.tracestate
    )
    if trace is not None:
        trace.record("HTTP_RECV_START", began_ns)
        trace.record("HTTP_RECV_END", received_ns)
        add_attributes(trace, _request_attributes(scope(), request_head))
        request.trace = trace
    return trace


def record_send_start(trace: Trace, status: int) -> None:
    """Record that the response, which has that status, is written."""
    trace.record("HTTP_SEND_START")
    attributes: dict[str, str | int] = {"http.response.status_code": status}
    if status >= 500:
        attributes["error.type"] = str(status)
    add_attributes(trace, attributes)


def end_trace(trace: Trace) -> None:
    """Record that the last byte of the response was handed to the transport, and end the trace."""
    trace.record("HTTP_SEND_END")
    trace.end()


class ApplicationTrace:
    """The trace of one request to an ASGI application, which sends through it; the end of the `with` block ends it."""

    def __init__(self, tracing: Tracing, scope: Scope, send: Send) -> None:
        self._tracing = tracing
        self._scope = scope
        self._send = send
        self._began_ns = monotonic_ns()
        self._trace: Trace | None = None
        self._sending = False

    def __enter__(self) -> "ApplicationTrace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._trace is not None:
            end_trace(self._trace)

    def begin(self, request: Request, request_head: RequestHead, received_ns: int) -> None:
        """Start the trace of a request whose last byte arrived at that `time.monotonic_ns()`, if it is sampled."""
        if self._tracing.active:
            self._trace = begin_trace(
                self._tracing, request, request_head, lambda: self._scope, self._began_ns, received_ns
            )
            self._scope.get("state", {})[TRACE] = self._trace

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        if self._trace is not None and not self._sending:
            self._sending = True
            record_send_start(self._trace, message["status"])
        await self._send(message)


def _request_attributes(scope: Scope, request_head: RequestHead) -> Attributes:
    """See https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server."""
    headers = dict(scope["headers"])
    version = "/versions/{model_version}" if request_head.version else ""
    attributes: dict[str, str | int] = {
        "http.request.method": scope["method"],
        "http.route": f"/v2/models/{{model_name}}{version}/{request_head.action}",
        "url.path": scope["path"],
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope.get("http_version", "1.1"),
    }
    if scope.get("query_string"):
        attributes["url.query"] = scope["query_string"].decode("latin-1")
    if b"user-agent" in headers:
        attributes["user_agent.original"] = headers[b"user-agent"].decode("latin-1")
    if scope.get("client"):
        attributes["client.address"] = scope["client"][0]
    return {**attributes, **_server_attributes(headers.get(b"host", b"").decode("latin-1"))}


def _server_attributes(host: str) -> Attributes:
    """The address and the port of a Host header."""
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return {}
    return ({"server.address": name} if name else {}) | ({"server.port": port} if port else {})

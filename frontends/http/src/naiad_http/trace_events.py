"""Trace events of the HTTP frontend: receive and send of requests to models. Only used while `Tracing.active`."""

from time import monotonic_ns
from types import TracebackType

from starlette.types import Message, Send

from naiad.tracing import Trace
from naiad.types import Request
from naiad_http.codec.request_head import RequestHead
from naiad_kit.tracing import Tracing


def begin_trace(
    tracing: Tracing, request: Request, request_head: RequestHead, began_ns: int, received_ns: int
) -> Trace | None:
    """The trace of a request if it is sampled; its first and last byte arrived at these `time.monotonic_ns()`."""
    trace = tracing.sample(
        request.model_name, request.version, request.id, request_head.traceparent, request_head.tracestate
    )
    if trace is not None:
        trace.record("HTTP_RECV_START", began_ns)
        trace.record("HTTP_RECV_END", received_ns)
        request.trace = trace
    return trace


def end_trace(trace: Trace) -> None:
    """Record that the last byte of the response was handed to the transport, and end the trace."""
    trace.record("HTTP_SEND_END")
    trace.end()


class ApplicationTrace:
    """The trace of one request to an ASGI application, which sends through it; the end of the `with` block ends it."""

    def __init__(self, tracing: Tracing, send: Send) -> None:
        self._tracing = tracing
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
            self._trace = begin_trace(self._tracing, request, request_head, self._began_ns, received_ns)

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        if self._trace is not None and not self._sending:
            self._sending = True
            self._trace.record("HTTP_SEND_START")
        await self._send(message)

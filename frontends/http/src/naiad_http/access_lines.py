"""HTTP connection that writes a line of the access log for each request; others know nothing of that log."""

import asyncio
import re
from time import monotonic_ns
from typing import Any
from urllib.parse import unquote

from naiad.types import Request, Trace
from naiad_http.codec import Encoded
from naiad_http.codec.request_head import RequestHead
from naiad_http.connection_context import ConnectionContext
from naiad_http.heads import HttpHead
from naiad_http.incoming import Message
from naiad_http.protocol import HttpProtocol
from naiad_http.response_sinks import EventSink, TakesOutcomes
from naiad_http.statuses import HttpResponse, Outcome
from naiad_kit.access_lines import Form
from naiad_kit.access_log import AccessLog, address_of
from naiad_kit.tracing import traceparent_of

_CLIENT_CLOSED = 499

_OF_MODEL = re.compile(
    rb"/v2/models/(?!stats$)(?P<model>[^/]+)(?:/versions/(?P<version>[0-9]{1,18}))?(?:/.*)?"
    rb"|/v2/repository/models/(?P<loaded>.+)/(?:un)?load"
)
"""The other paths that name a model; `/v2/models/stats` has the counters of all."""


class LoggedProtocol(HttpProtocol):
    """One connection with an access log. Refused requests without a complete head have a line without operation."""

    def __init__(self, access: AccessLog, context: ConnectionContext, *others: Any, **named: Any) -> None:
        super().__init__(context, *others, **named)
        self._line = _Client(access)  # one attribute: Python has a slower layout for objects with more than 30

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As in Connection."""
        self._line.peer = address_of(transport.get_extra_info("peername"))
        super().connection_made(transport)

    def _write_success(self, request: Request, outcome: Outcome, encoded: Encoded) -> None:
        line, sent, trace = self._line, len(encoded.text) + encoded.size, self._trace
        if (
            self._head is not line.head
            or request.id != line.request_id
            or sent != line.sent
            or outcome.version != line.version  # type: ignore[union-attr]
            or line.received
            or trace is not None
        ):
            line.describe(self._head, outcome.version, request.id, sent, traceparent=traceparent_of(trace))  # type: ignore[union-attr]
        line.record(line.subject, line.trace, self._began_ns or self._received_ns, self._call)
        HttpProtocol._write_success(self, request, outcome, encoded)  # `super()` takes as long as three attributes

    # What is not the response to an infer request

    def _start_large(self, request_head: RequestHead, message: Message) -> None:
        self._line.received = len(message.front) + len(message.rest)
        super()._start_large(request_head, message)

    def _start_application(self, message: Message) -> None:
        self._line.received = len(message.front) + len(message.rest)
        super()._start_application(message)

    def _write_encoded(
        self, request: Request, outcome: Outcome, encoded: Encoded | HttpResponse | BaseException
    ) -> None:
        self._line.answered_id = request.id
        super()._write_encoded(request, outcome, encoded)
        self._line.answered_id = ""

    def _sink(self, request_head: RequestHead, request_id: str, http_version: str) -> TakesOutcomes:
        sink = super()._sink(request_head, request_id, http_version)
        self._line.answered_id = request_id
        self._line.events = sink if isinstance(sink, EventSink) else None
        return _NotingSink(self._line, sink)

    def _write_response(self, response: HttpResponse, keep_alive: bool) -> None:
        super()._write_response(response, keep_alive)
        if not self._busy:  # refused before it was complete
            self._head, self._received_ns = None, monotonic_ns()
        self._log(response.status, len(response.body), self._call)

    def _end_stream(self) -> None:
        events = self._line.events
        self._log(200, 0 if events is None else events.sent, self._call)
        super()._end_stream()

    def _end_cycle(self) -> None:
        if self._cycle is not None:
            self._log(self._cycle.status, self._cycle.sent, self._cycle.call, self._cycle.trace)
        super()._end_cycle()

    def _forget(self) -> None:
        if self._busy and self._head is not None:
            self._log(_CLIENT_CLOSED, 0, self._call)
        super()._forget()

    def _log(self, status: int, sent: int, call: object, trace: Trace | None = None) -> None:
        """Log the request that has ended; `trace` is its own if an application served it."""
        line = self._line
        line.describe(self._head, line.answered, line.answered_id, sent, status, traceparent_of(trace or self._trace))
        line.record(line.subject, line.trace, self._began_ns or self._received_ns, call)
        line.answered_id, line.answered, line.events = "", 0, None


class _Client:
    """The client of one connection, with the texts of its last line, since clients repeat their requests.

    A line has the texts `subject` and `trace` of the one before if it is of an infer request with the same `head` and
    `request_id`, answered by the same `version` in as many bytes (`sent`), without a trace of the server's own. The
    version, id and events of other requests are in `answered`, `answered_id` and `events` until their lines are
    written. `received` is the size of the body of the request in flight where its head may not say it. `record` is that
    of the access log.
    """

    __slots__ = (
        "_caller",
        "_form",
        "_of",
        "_trace",
        "answered",
        "answered_id",
        "events",
        "head",
        "peer",
        "received",
        "record",
        "request_id",
        "sent",
        "subject",
        "trace",
        "version",
    )

    def __init__(self, access: AccessLog) -> None:
        self.record = access.record
        self._form = access.form
        self.peer = self.request_id = self.answered_id = self.subject = self.trace = self._caller = self._trace = ""
        self.received = self.answered = self.version = self.sent = 0
        self.events: EventSink | None = None
        self.head: HttpHead | None = None
        self._of: tuple[HttpHead | None, int] | None = None  # head and version that `_caller` and `_trace` describe

    def describe(
        self, head: HttpHead | None, version: int, request_id: str, sent: int, status: int = 200, traceparent: str = ""
    ) -> None:
        """Set `subject` and `trace` for a request that ends now; `traceparent` is that of the server's own trace."""
        form = self._form
        if self._of is None or self._of[0] is not head or self._of[1] != version:
            self._of = head, version
            self._caller = self._describe(form, head, version)
        size = self.received or (0 if head is None else head.length)
        self.subject = form.subject(self._caller, request_id, status, size, sent)
        self.trace = form.trace(traceparent) if traceparent else self._trace
        is_repeated = status == 200 and not traceparent and not self.received
        self.head = head if is_repeated else None
        self.version, self.request_id, self.sent = version, request_id, sent
        self.received = 0

    def _describe(self, form: Form, head: HttpHead | None, version: int) -> str:
        if head is None:
            self._trace = form.trace("")
            return form.caller(self.peer, "http", "", "", version)
        if head.request_head is not None:
            model, version_in_path = head.request_head.model_name, head.request_head.version
            self._trace = form.trace(head.request_head.traceparent)
        else:
            model, version_in_path = _named_model(head.path)
            self._trace = form.trace(dict(head.headers).get(b"traceparent", b"").decode("latin-1").strip())
        return form.caller(
            self.peer, "http", f"{head.method} {head.path.decode('latin-1')}", model, version or version_in_path
        )


def _named_model(path: bytes) -> tuple[str, int]:
    """The model that a path other than those of inference names, "" for none, and its version, 0 for none."""
    parts = _OF_MODEL.fullmatch(path)
    if parts is None:
        return "", 0
    return unquote((parts["model"] or parts["loaded"]).decode("latin-1"), errors="replace"), int(parts["version"] or 0)


class _NotingSink:
    """A sink of outcomes that notes the version of each of them for the line first."""

    __slots__ = ("_line", "_sink")

    def __init__(self, line: _Client, sink: TakesOutcomes) -> None:
        self._line = line
        self._sink = sink

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome."""
        self._line.answered = getattr(outcome, "version", 0) or self._line.answered
        self._sink.deliver(outcome)

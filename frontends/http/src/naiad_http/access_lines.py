"""HTTP connection that writes a line of the access log for each request; others know nothing of that log."""

import asyncio
from time import monotonic_ns
from typing import Any

from naiad.types import Request
from naiad_http.codec import Encoded
from naiad_http.codec.request_head import RequestHead
from naiad_http.connection_context import ConnectionContext
from naiad_http.heads import HttpHead
from naiad_http.incoming import Message
from naiad_http.protocol import HttpProtocol
from naiad_http.response_sinks import EventSink, TakesOutcomes
from naiad_http.statuses import HttpResponse, Outcome
from naiad_kit.access_log import NO_PHASES, AccessLog, address_of

_CLIENT_CLOSED = 499


class LoggedProtocol(HttpProtocol):
    """One connection with an access log. Refused requests without a complete head have a line without operation."""

    def __init__(self, access: AccessLog, context: ConnectionContext, *others: Any, **named: Any) -> None:
        super().__init__(context, *others, **named)
        self._line = _Line(access)  # one attribute: Python has a slower layout for objects with more than 30

    def _write_success(self, request: Request, outcome: Outcome, encoded: Encoded) -> None:
        line, head, version = self._line, self._head, outcome.version  # type: ignore[union-attr]
        if head is not line.head or version != line.version:
            line.describe(head, version, self._transport)
        sent = len(encoded.text) + encoded.size
        subject = line.subject if sent == line.sent and not request.id else line.subject_of(request.id, 200, sent)
        began_ns, call = self._began_ns or self._received_ns, self._call
        try:
            queue_ns, phases, batch = call.queue_ns, call.phases, call.joined  # type: ignore[union-attr]
        except AttributeError:
            queue_ns, phases, batch = _times_of(call)
        line.access.record(subject, began_ns, queue_ns, phases, batch, line.traceparent)
        HttpProtocol._write_success(self, request, outcome, encoded)  # `super()` takes as long as three attributes

    # What is not the response to an infer request

    def _start_large(self, request_head: RequestHead, message: Message) -> None:
        self._line.note_body(len(message.front) + len(message.rest))
        super()._start_large(request_head, message)

    def _start_application(self, message: Message) -> None:
        self._line.note_body(len(message.front) + len(message.rest))
        super()._start_application(message)

    def _write_encoded(
        self, request: Request, outcome: Outcome, encoded: Encoded | HttpResponse | BaseException
    ) -> None:
        self._line.request_id = request.id
        super()._write_encoded(request, outcome, encoded)

    def _sink(self, request_head: RequestHead, request_id: str, http_version: str) -> TakesOutcomes:
        sink = super()._sink(request_head, request_id, http_version)
        self._line.request_id = request_id
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
            self._log(self._cycle.status, self._cycle.sent, self._cycle.call)
        super()._end_cycle()

    def _forget(self) -> None:
        if self._busy and self._head is not None:
            self._log(_CLIENT_CLOSED, 0, self._call)
        super()._forget()

    def _log(self, status: int, sent: int, call: object) -> None:
        """Log the request that has ended."""
        line = self._line
        if self._head is not line.head or line.answered != line.version:
            line.describe(self._head, line.answered, self._transport)
        subject = line.subject_of(line.request_id, status, sent)
        line.access.record(subject, self._began_ns or self._received_ns, *_times_of(call), line.traceparent)
        line.request_id, line.answered, line.events = "", 0, None


class _Line:
    """What the lines of one connection have in common. Clients repeat their requests: that of the latest is kept.

    `subject` is that of an answer of `sent` bytes to a request with the `head`, by that version of its model.
    `request_id`, `answered` (the version) and `events` are those of a request other than a plain infer request.
    """

    __slots__ = (
        "_body", "_caller", "_received", "access", "answered", "events", "head", "request_id", "sent", "subject",
        "traceparent", "version",
    )  # fmt: skip

    def __init__(self, access: AccessLog) -> None:
        self.access = access
        self._caller = self.subject = self.traceparent = self.request_id = ""
        self._body = self._received = self.version = self.answered = 0
        self.sent = -1
        self.head: HttpHead | object | None = self
        self.events: EventSink | None = None

    def note_body(self, size: int) -> None:
        """The next request has a body of that size, which its head may not say."""
        self._body = size
        self.head = self

    def describe(self, head: HttpHead | None, version: int, transport: asyncio.Transport) -> None:
        """Requests have that head from now on, and are answered by that version, 0 for none."""
        model = None if head is None else head.request_head
        self._caller = self.access.caller(
            address_of(transport.get_extra_info("peername")),
            "http",
            "" if head is None else f"{head.method} {head.path.decode('latin-1')}",
            "" if model is None else model.model_name,
            version or (0 if model is None else model.version),
        )
        self._received = 0 if head is None else head.length or self._body
        self.traceparent = "" if model is None else model.traceparent
        self.head, self.version, self.sent, self._body = head, version, -1, 0

    def subject_of(self, request_id: str, status: int, sent: int) -> str:
        """The subject of such an answer."""
        subject = self.access.subject(self._caller, request_id, status, self._received, sent)
        if status == 200 and not request_id:
            self.subject, self.sent = subject, sent
        return subject


def _times_of(call: object) -> tuple[int, tuple[int, int, int], tuple[Any, ...]]:
    """How long a request waited, the times of its phases, and its batch, as far as its call has them."""
    return getattr(call, "queue_ns", 0), getattr(call, "phases", NO_PHASES), getattr(call, "joined", ())


class _NotingSink:
    """A sink of outcomes that notes the version of each of them for the line first."""

    __slots__ = ("_line", "_sink")

    def __init__(self, line: _Line, sink: TakesOutcomes) -> None:
        self._line = line
        self._sink = sink

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome."""
        self._line.answered = getattr(outcome, "version", 0) or self._line.answered
        self._sink.deliver(outcome)

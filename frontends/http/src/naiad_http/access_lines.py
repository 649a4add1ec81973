"""HTTP connection that writes a line of the access log for each request; others know nothing of that log."""

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from naiad.types import Request
from naiad_http.codec import Encoded, ResponseForm
from naiad_http.codec.request_head import RequestHead
from naiad_http.connection_context import Call, ConnectionContext
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
        self._access = access
        self._head: HttpHead | None = None
        self._described: HttpHead | object | None = self
        self._subject = ""
        self._first_ns = self._received = self._sent = self._status = self._version = 0
        self._request_id = ""
        self._events: EventSink | None = None

    def _start(self, message: Message) -> None:
        self._head = message.head
        self._first_ns = self._began_ns or monotonic_ns()
        self._received = message.head.length or len(message.front) + len(message.rest)
        self._status = self._sent = self._version = 0
        self._request_id = ""
        super()._start(message)

    def _deliver_response(self, request: Request, form: ResponseForm, outcome: Outcome) -> None:
        self._request_id = request.id
        self._note_version(outcome)
        super()._deliver_response(request, form, outcome)

    def _sink(self, request_head: RequestHead, request_id: str, http_version: str) -> TakesOutcomes:
        self._request_id = request_id
        sink = super()._sink(request_head, request_id, http_version)
        self._events = sink if isinstance(sink, EventSink) else None
        return _NotingSink(self._note_version, sink)

    def _note_version(self, outcome: Outcome) -> None:
        self._version = getattr(outcome, "version", 0) or self._version

    def _write_success(self, encoded: Encoded) -> None:
        self._status, self._sent = 200, len(encoded.text) + encoded.size
        super()._write_success(encoded)

    def _write_response(self, response: HttpResponse, keep_alive: bool) -> None:
        self._status, self._sent = response.status, len(response.body)
        super()._write_response(response, keep_alive)
        if not self._busy:  # refused before it was complete: there is no `_finish`
            self._head, self._first_ns = None, self._began_ns or monotonic_ns()
            self._received = 0
            self._record(None)

    def _finish(self) -> None:
        cycle = self._cycle
        if cycle is not None and not self._status:
            self._status, self._sent = cycle.status, cycle.sent
            self._record(cycle.call)
        else:
            if self._events is not None and not self._status:
                self._status, self._sent = 200, self._events.sent
            self._record(self._call)
        super()._finish()

    def _forget(self) -> None:
        if self._busy and self._head is not None:
            self._status = _CLIENT_CLOSED
            self._record(self._call)
        super()._forget()

    def _record(self, call: Call | None) -> None:
        now, head = monotonic_ns(), self._head
        if head is not self._described:  # clients repeat their heads
            self._describe(head)
        model = None if head is None else head.request_head
        self._head = self._events = None
        self._access.record(
            (
                now,
                self._subject,
                self._version or (0 if model is None else model.version),
                self._request_id,
                self._status,
                self._received,
                self._sent,
                now - self._first_ns,
                getattr(call, "queue_ns", 0),
                getattr(call, "phases", NO_PHASES),
                getattr(call, "joined", ()),
                "" if model is None else model.traceparent,
            )
        )

    def _describe(self, head: HttpHead | None) -> None:
        self._described = head
        peer = address_of(self._transport.get_extra_info("peername"))
        model = "" if head is None or head.request_head is None else head.request_head.model_name
        operation = "" if head is None else f"{head.method} {head.path.decode('latin-1')}"
        self._subject = self._access.subject(peer, "http", operation, model)


class _NotingSink:
    """A sink of outcomes that shows each of them to `note` first."""

    __slots__ = ("_note", "_sink")

    def __init__(self, note: Callable[[Outcome], None], sink: TakesOutcomes) -> None:
        self._note = note
        self._sink = sink

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome."""
        self._note(outcome)
        self._sink.deliver(outcome)

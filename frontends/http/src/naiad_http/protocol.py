"""HTTP protocol: routes inference straight to the server and all other requests to the ASGI application.

A request to a model creates no task, no ASGI cycle and no future: the bytes are decoded, the request is submitted, and
the server calls back with each outcome, which is written.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

from naiad.errors import InternalError, NaiadError, ShuttingDownError
from naiad.types import Request, Trace
from naiad_http import wire
from naiad_http.codec import Encoded, ResponseForm
from naiad_http.codec.request_head import RequestHead
from naiad_http.codec.requests import LARGE_BYTES
from naiad_http.codec.responses import LargeOutput
from naiad_http.connection import Connection
from naiad_http.connection_context import Call, ConnectionContext
from naiad_http.cycles import AsgiCycle, asgi_scope
from naiad_http.event_writer import EventWriter
from naiad_http.generate import EventStream, OneResponse
from naiad_http.heads import HttpHead
from naiad_http.incoming import Message
from naiad_http.response_sinks import EventSink, SingleResponseSink, TakesOutcomes
from naiad_http.statuses import Headers, HttpResponse, Outcome, error_response, unexpected
from naiad_http.trace_events import begin_trace, end_trace, record_send_start
from naiad_kit.frontends.codec_threads import CodecJob


class HttpProtocol(Connection):
    """One connection; uvicorn creates it."""

    def __init__(
        self,
        context: ConnectionContext,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(context, server_state, _loop or asyncio.get_running_loop())
        self._config = config
        self._call: Call | None = None
        self._deliver: Callable[[Outcome], None] | None = None  # receives the outcomes of the call
        self._cycle: AsgiCycle | None = None
        self._head: HttpHead | None = None  # of the request in flight
        self._received_ns = 0  # when that was complete
        self._tracing = context.inference.tracing
        self._trace: Trace | None = None
        self._encoding: CodecJob[Any] | None = None  # of a response that a thread encodes

    def pause_writing(self) -> None:
        """The client reads too slowly: pause its model, and start no request until it has caught up."""
        super().pause_writing()
        if self._call is not None:
            self._call.pause()

    def resume_writing(self) -> None:
        """The client has caught up. A model may send at once, so the connection goes on first, and may pause again."""
        super().resume_writing()
        if self._call is not None and self._encoding is None and not self._flow.write_paused:
            self._call.resume()

    def conclude(self) -> None:
        """The grace period is nearly over: cancel the request in flight and answer 503."""
        call, deliver, cycle = self._call, self._deliver, self._cycle
        error = ShuttingDownError("the server stopped before the request was answered; try again later")
        if call is not None and deliver is not None:
            call.cancel()
            if self._encoding is not None:
                self._encoding.cancel()
            deliver(error)
        elif cycle is not None and not cycle.status:
            cycle.disconnect()
            self._respond(error_response(error))

    def _start(self, message: Message) -> None:
        self._head = head = message.head
        self._received_ns = monotonic_ns()
        if head.direct and head.request_head is not None:
            if head.length > LARGE_BYTES or head.chunked:
                self._start_large(head.request_head, message)
            else:
                self._start_inference(head.request_head, message)
        elif head.refusal is not None:
            self._respond(error_response(head.refusal))
        else:
            self._start_application(message)

    def _write_response(self, response: HttpResponse, keep_alive: bool) -> None:
        has_body = self._head is None or self._head.method != "HEAD"
        self._transport.write(wire.whole(response, self._context.date, keep_alive, has_body))

    def _respond(self, response: HttpResponse) -> None:
        self._record_send_start(response.status)
        super()._respond(response)

    def _finish(self) -> None:
        if self._trace is not None:
            end_trace(self._trace)
        if self._encoding is not None:
            self._encoding.cancel()
        self._head = self._call = self._deliver = self._cycle = self._trace = self._encoding = None
        Connection._finish(self)  # a tenth of the time of `super()`

    def _forget(self) -> None:
        if self._trace is not None:
            self._trace.end()
        if self._encoding is not None:
            self._encoding.cancel()
        call, cycle = self._call, self._cycle
        self._head = self._call = self._deliver = self._cycle = self._trace = self._encoding = None
        if call is not None:
            call.cancel()
        if cycle is not None:
            cycle.disconnect()

    # Requests to a model

    def _start_inference(self, request_head: RequestHead, message: Message) -> None:
        request: Request | None = None
        deliver: Callable[[Outcome], None]
        received_ns = self._received_ns
        try:
            if request_head.action == "infer":
                request, form = self._context.inference.decode(request_head, message.front, message.rest, received_ns)
                if self._tracing.active:
                    self._begin_trace(request, message.head)
                deliver = partial(self._deliver_response, request, form)
                call = self._context.submit(request, deliver)
            else:
                request = self._context.inference.decode_generate(request_head, message.front, received_ns)
                if self._tracing.active:
                    self._begin_trace(request, message.head)
                deliver = self._sink(request_head, request.id, message.head.http_version).deliver
                call = self._context.submit(request, deliver, streams=True)
        except NaiadError as error:
            self._respond(error_response(error, request.id if request else ""))
        except Exception as error:  # noqa: BLE001 - a bug must neither leave the client waiting nor end the connection
            self._respond(unexpected(error, request.id if request else ""))
        else:
            if self._busy:
                self._call, self._deliver = call, deliver
                if self._flow.write_paused or self._encoding is not None:  # the call has already sent too much
                    call.pause()
            else:  # the response is complete; the call may have further outcomes
                call.cancel()

    def _start_large(self, request_head: RequestHead, message: Message) -> None:
        """Leave a request whose decoding may take milliseconds to the application, which decodes it on a thread."""
        try:
            is_large = self._context.inference.is_large(request_head, message.front, message.rest)
        except NaiadError as error:
            self._respond(error_response(error))
            return
        if is_large:
            self._start_application(message)
        else:
            self._start_inference(request_head, message)

    def _deliver_response(self, request: Request, form: ResponseForm, outcome: Outcome) -> None:
        """Write the response to an infer request, or its error."""
        try:
            encoded = self._context.inference.encode(outcome, request, form)
        except LargeOutput:
            inference = self._context.inference
            work = partial(inference.encode, outcome, request, form, on_thread=True)
            write = partial(self._write_encoded, request, outcome)
            self._encoding = inference.threads.submit(work, write, self._loop)
            return
        if type(encoded) is Encoded:
            self._write_success(request, outcome, encoded)
        else:
            self._write_encoded(request, outcome, encoded)

    def _write_encoded(
        self, request: Request, outcome: Outcome, encoded: Encoded | HttpResponse | BaseException
    ) -> None:
        if isinstance(encoded, NaiadError):  # as of threads, none of which could be started
            encoded = error_response(encoded, request.id)
        elif isinstance(encoded, BaseException):  # no encoder may raise these; SystemExit of a model's object for one
            encoded = unexpected(InternalError(f"{type(encoded).__name__} while the answer was encoded"))
        if isinstance(encoded, HttpResponse):
            self._respond(encoded)
        else:
            self._write_success(request, outcome, encoded)

    def _write_success(self, _request: Request, _outcome: Outcome, encoded: Encoded) -> None:
        if self._stopping:
            self._keep_alive = False
        if self._trace is not None:
            self._record_send_start(200)
        self._transport.writelines(wire.success(encoded, self._context.date, self._keep_alive))
        self._finish()

    def _sink(self, request_head: RequestHead, request_id: str, http_version: str) -> TakesOutcomes:
        """The sink of the outcomes of a generate request."""
        headers = partial(self._context.inference.load_headers, request_head)
        limit = self._context.inference.max_json_output
        if request_head.action == "generate":
            return SingleResponseSink(
                OneResponse(request_id, limit), self._respond_early, headers, self._encode_on_thread
            )
        chunked = http_version == "1.1"
        head = partial(self._stream_head, headers, chunked)
        writer = EventWriter(self._transport, self._loop, head, chunked, self._end_stream)
        return EventSink(EventStream(request_id, limit), writer, self._respond_early, self._encode_on_thread)

    def _encode_on_thread(self, work: Callable[[], Any], write: Callable[[Any], None]) -> CodecJob[Any]:
        """Encode a response on a thread, and pause its call meanwhile, which may have further responses."""
        if self._call is not None:
            self._call.pause()
        done = partial(self._write_next, write)
        self._encoding = job = self._context.inference.threads.submit(work, done, self._loop)
        return job

    def _write_next(self, write: Callable[[Any], None], encoded: object) -> None:
        self._encoding = None
        write(encoded)
        if self._call is not None and self._encoding is None and not self._flow.write_paused:
            self._call.resume()

    def _begin_trace(self, request: Request, head: HttpHead) -> None:
        if head.request_head is not None:
            scope = partial(asgi_scope, head, self._transport)
            received_ns = self._received_ns
            began_ns = self._began_ns or received_ns
            self._trace = begin_trace(self._tracing, request, head.request_head, scope, began_ns, received_ns)

    def _record_send_start(self, status: int) -> None:
        if self._trace is not None:
            record_send_start(self._trace, status)

    def _stream_head(self, headers: Callable[[], Headers], chunked: bool) -> bytes:
        self._record_send_start(200)
        return wire.event_stream(headers(), self._context.date, chunked, self._decide_keep_alive())

    def _end_stream(self) -> None:
        if self._call is not None:
            self._call.cancel()
        self._finish()

    def _respond_early(self, response: HttpResponse) -> None:
        """Respond to a call that may have further outcomes, and cancel it."""
        if self._call is not None:
            self._call.cancel()
        self._respond(response)

    # All other requests

    def _start_application(self, message: Message) -> None:
        headers = self._state.default_headers
        cycle = AsgiCycle(message, self._transport, self._flow, headers, self._decide_keep_alive, self._end_cycle)
        self._cycle = cycle
        task = self._loop.create_task(cycle.run_asgi(self._config.loaded_app))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def _end_cycle(self) -> None:
        self._finish()

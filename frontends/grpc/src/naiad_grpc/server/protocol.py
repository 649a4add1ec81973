"""Protocol of asyncio for one connection: the shell around HTTP/2, which joins what it writes in a turn of the loop."""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

from naiad_grpc.http2.connection import Connection
from naiad_grpc.http2.events import ConnectionEnded, DataReceived, Event, OutputSent, RequestReceived, StreamEnded
from naiad_grpc.server.calls import Call
from naiad_grpc.server.generator_calls import GeneratorCall
from naiad_grpc.server.methods import Method
from naiad_grpc.server.receiving import Receiver
from naiad_grpc.server.shared import ListenerContext
from naiad_grpc.server.stream_calls import MessageStreamCall
from naiad_grpc.server.unary_calls import UnaryCall
from naiad_grpc.service.operations import UnaryOperation
from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire import answers
from naiad_grpc.wire.heads import CallHead
from naiad_grpc.wire.message_reader import PREFIX_BYTES
from naiad_kit.access_log import address_of
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES

_MOST_UNSENT = 65536
"""Unsent bytes at which answers wait for the client."""
_MOST_UNREAD = 1 << 20
"""Bytes of heads, statuses and control frames that may come on top of them before the connection is closed."""
_FEW_BYTES = 16 << 10
"""To copy so many bytes takes less time than a system call for many buffers."""
_GOODBYE_BYTES = 1024
"""High-water mark of a TLS connection that closes: its last record must have no lost connection paused by asyncio."""
_LINGER_SECONDS = 1.0
"""How long a client may still send after it was sent the end of its connection, so that it can read why."""
_LONGEST_TIMER = 10.0
"""The seconds between two looks at stalled streams and slow requests."""


class GrpcProtocol(Receiver):
    """One connection; one above the limit of connections is closed at once."""

    def __init__(self, context: ListenerContext) -> None:
        super().__init__(context)
        self.peer = "-"
        self._loop = context.loop
        self._transport: asyncio.Transport
        self._unsent_answers: dict[int, tuple[str, int]] = {}  # of calls that are over: the API, and bytes that wait
        self._flushing = self._reading = self._closing = self._greeted = False
        self._held_since: float | None = None
        self._unsent = 0
        self._timer: asyncio.TimerHandle | None = None

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, within the limit of connections.

        Our settings wait for the first bytes of the client, because one that speaks HTTP/1 gets an answer in HTTP/1.
        """
        self._transport = cast("asyncio.Transport", transport)
        self.peer = address_of(transport.get_extra_info("peername"))
        now = self._loop.time()
        self.http2 = Connection(self.context.heads, self.context.limits, now)
        if len(self.context.connections) >= self.context.most_connections:
            self._closing = True
            self._transport.abort()
            return
        self.context.connections.add(self)
        self._transport.set_write_buffer_limits(_MOST_UNSENT)
        self._set_timer(now)

    def receive(self, data: bytes | memoryview) -> None:
        """Act on the frames of the client, and write what they led to.

        An event can be about a stream that a later frame has reset: then nothing may be sent on it.
        """
        if self._closing:
            return
        self._flushing = self._reading = True  # everything is written below
        now = self._loop.time()
        streams = self.http2.streams
        try:
            for event in self.http2.receive(data, now):
                kind = type(event)
                if kind is RequestReceived:
                    if event.stream_id in streams:  # type: ignore[union-attr]
                        self._begin(event, now)  # type: ignore[arg-type]
                elif kind is DataReceived:
                    call = self.calls.get(event.stream_id)  # type: ignore[union-attr]
                    if call is not None and event.stream_id in streams:  # type: ignore[union-attr]
                        call.receive(event.content, event.ended)  # type: ignore[union-attr]
                else:
                    self._act(event)
        finally:
            self._write()
        if not self._greeted and self.http2.greeted and not self._closing:  # from now on other timers count
            self._greeted = True
            self._set_timer(now)

    def eof_received(self) -> None:
        """The client sends no more: its calls cannot continue."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all calls and release everything."""
        self._closing = True
        self.context.connections.discard(self)
        if not self.context.connections:
            self.context.empty.set()
        if self._timer is not None:
            self._timer.cancel()
        self._end_calls()
        self._release_unsent()
        self.http2.outbox.frames.clear()

    def pause_writing(self) -> None:
        """The client reads too slowly: answers wait in their streams."""
        self._unsent = self._transport.get_write_buffer_size()
        self.context.budget.add(self._unsent)
        self.context.sending.add(self)
        self._held_since = self._loop.time()
        self.http2.hold()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._release_unsent()
        self._held_since = None
        if not self._closing:
            self._act_on(self.http2.release(self._loop.time()))

    def _release_unsent(self) -> None:
        self.context.budget.release(self._unsent)
        self._unsent = 0
        self.context.has_sent(self)

    # What the listener calls

    def drain(self) -> None:
        """The server stops: no new calls here; streams get no more messages."""
        self.http2.drain(self._loop.time())
        self._flush_soon()
        for call in tuple(self.calls.values()):
            call.cut()

    def close(self) -> None:
        """End the connection and all its calls."""
        if not self._closing:
            self._act_on(self.http2.end(self._loop.time()))

    def abort(self) -> None:
        """Close at once, whatever is unsent."""
        self._transport.abort()

    # What calls do

    def take_turn(self, later: Callable[[], None]) -> bool:
        """Whether a request may start now; otherwise `later` is called in a later turn of the event loop."""
        turns = self.context.turns
        if not turns.free:
            turns.postpone(later)
            return False
        turns.free -= 1
        if not turns.free:
            turns.refill_soon(self._loop)
        return True

    def respond(self, stream_id: int, head: bytes, content: list[Buffer], size: int) -> None:
        """Send the whole answer of a call, `size` bytes of content."""
        if size > UNCHARGED_BYTES:  # its request counts still: the peak has both
            self.context.budget.add(size - PREFIX_BYTES)
            self.context.budget.release(size - PREFIX_BYTES)
        self.http2.respond(stream_id, head, content, size, answers.OK_TRAILERS, self._loop.time())
        if len(self.calls) == 1 and not self._reading:  # the client waits for no other, and acts while we count
            self._write()
        else:
            self._flush_soon()

    def send_head(self, stream_id: int, block: bytes) -> None:
        """Send the head of an answer."""
        self.http2.send_head(stream_id, block, self._loop.time())
        self._flush_soon()

    def send_message(self, stream_id: int, content: list[Buffer]) -> bool:
        """Send a message with its prefix. False if some of it must wait; the call's `sent` is called then."""
        self._flush_soon()
        return self.http2.send_data(stream_id, content, self._loop.time())

    def send_end(self, stream_id: int) -> None:
        """End an answer well."""
        self.http2.send_trailers(stream_id, answers.OK_TRAILERS, self._loop.time())
        self._flush_soon()

    def send_status(self, stream_id: int, error: RpcError, head_sent: bool = False) -> None:
        """End an answer with a status."""
        block = answers.trailers(error) if head_sent else answers.trailers_only(error)
        self.http2.send_trailers(stream_id, block, self._loop.time())
        self._flush_soon()

    def forget(self, stream_id: int) -> None:
        """The call of that stream is over. It counts as in flight until its answer is sent."""
        self._memory = None  # it may be that of this call
        call = self.calls.pop(stream_id, None)
        if call is None:
            return
        stream = self.http2.streams.get(stream_id)
        if stream is None:
            self.context.admission.end_call(call.api)
        else:
            self._unsent_answers[stream_id] = call.api, stream.queued
            self.context.budget.add(stream.queued)

    # Events

    def _begin(self, request: RequestReceived, now: float) -> None:
        """Begin a call, or refuse it."""
        stream_id = request.stream_id
        head: CallHead[Method] = request.head
        method, refusal = head.method, head.refusal
        if refusal is not None or method is None:
            self._refuse(stream_id, refusal or RpcError(Code.UNIMPLEMENTED, "Method not found!"))
            return
        operation, admission = method.operation, self.context.admission
        if not admission.admit(operation.api):
            refusal = admission.refusal(operation.api, head.fields)
            if refusal is not None:
                self._refuse(stream_id, refusal)
                return
            admission.begin(operation.api)
        call: Call
        try:
            if isinstance(operation, UnaryOperation):
                call = UnaryCall(self, stream_id, head, operation, now)
            elif operation.open is not None:
                call = MessageStreamCall(self, stream_id, head, operation, now)
            else:
                call = GeneratorCall(self, stream_id, head, operation, now)
        except RpcError as error:
            admission.end_call(operation.api)
            self._refuse(stream_id, error)
            return
        self.calls[stream_id] = call
        if request.ended:
            call.receive(request.content, True)

    def _refuse(self, stream_id: int, refusal: RpcError | int) -> None:
        if isinstance(refusal, RpcError):
            self.send_status(stream_id, refusal)
        else:
            self.http2.send_trailers(stream_id, answers.http_refusal(refusal), self._loop.time())

    def _act_on(self, events: Sequence[Event]) -> None:
        for event in events:
            self._act(event)
        self._flush_soon()

    def _act(self, event: Event) -> None:
        """Act on the less frequent events."""
        if isinstance(event, ConnectionEnded):
            self._end_calls()
            return
        self._release(event.stream_id)
        call = self.calls.get(event.stream_id)
        if call is None:
            return
        if isinstance(event, StreamEnded):
            call.cancel()
        elif isinstance(event, OutputSent) and event.stream_id in self.http2.streams:
            call.sent()

    def _end_calls(self) -> None:
        for call in tuple(self.calls.values()):
            call.cancel()
        for stream_id in tuple(self._unsent_answers):
            self._release(stream_id)

    def _release(self, stream_id: int) -> None:
        """The answer on that stream is sent, or is not going to be."""
        unsent = self._unsent_answers.pop(stream_id, None)
        if unsent is not None:
            self.context.admission.end_call(unsent[0])
            self.context.budget.release(unsent[1])

    # Output and time

    def _flush_soon(self) -> None:
        """Write at the end of this turn of the event loop."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        """Write all frames of this turn at once."""
        self._flushing = self._reading = False
        frames = self.http2.outbox.frames
        if frames and not self._transport.is_closing():
            if len(frames) == 1:
                self._transport.write(frames[0])
            elif sum(map(len, frames)) <= _FEW_BYTES:
                self._transport.write(b"".join(frames))
            else:
                self._transport.writelines(frames)
        frames.clear()
        if self._held_since is not None and self._transport.get_write_buffer_size() > self._unsent + _MOST_UNREAD:
            self._transport.abort()
        if self.http2.ended and not self._closing:
            self._close()

    def _close(self) -> None:
        """Close the connection once all is sent; what the client still sends is discarded, so that it reads the end."""
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        is_plain = self._transport.can_write_eof()
        self._transport.set_write_buffer_limits(0 if is_plain else _GOODBYE_BYTES, 0)  # until `resume_writing`
        try:
            if is_plain:
                self._transport.write_eof()
            else:
                self._transport.close()
        except OSError:  # the client has reset the connection, and the event loop does not know it yet
            self._transport.abort()
        self._linger(self._loop.time() + self.context.limits.timeouts.stall)

    def _linger(self, until: float) -> None:
        """Abort a moment after all is sent, or when the time is over. Under TLS the client closes, once it has read."""
        now = self._loop.time()
        if now >= until:
            self._transport.abort()
        elif self._transport.get_write_buffer_size() or not self._transport.can_write_eof():
            self._timer = self._loop.call_later(_LINGER_SECONDS, self._linger, until)
        else:
            self._timer = self._loop.call_later(_LINGER_SECONDS, self._transport.abort)

    def _set_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay = max(0.001, min(self.http2.next_timer() - now, _LONGEST_TIMER))
        self._timer = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        """Act on timers, stalls and slow requests."""
        now = self._loop.time()
        if self._held_since is not None and now - self._held_since >= self.context.limits.timeouts.stall:
            self._transport.abort()
            return
        for call in tuple(self.calls.values()):
            if call.is_too_slow(now):
                call.fail(RpcError(Code.CANCELLED, "a message took too long to arrive"))
        self._act_on(self.http2.tick(now))
        if not self.http2.ended:
            self._set_timer(now)

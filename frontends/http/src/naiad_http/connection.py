"""HTTP/1.1 connection under uvicorn: order of its requests, flow control, timeouts and shutdown."""

import asyncio
import select
from abc import abstractmethod
from time import monotonic_ns
from typing import cast

from uvicorn.server import ServerState

from naiad.errors import NaiadError
from naiad_http import wire
from naiad_http.connection_context import ConnectionContext
from naiad_http.cycles import Flow
from naiad_http.idle import IdleWatch
from naiad_http.incoming import Message
from naiad_http.limits import SPARE_CONNECTIONS, Limits, make_room, too_many
from naiad_http.reader import Event, Refusal, RequestReader
from naiad_http.statuses import HttpError, HttpResponse, error_response

LINGER_SECONDS = 5.0
"""How long a refused client may continue to send bytes, which are discarded, so that it can read the refusal."""

GOODBYE_SECONDS = 1.0
"""How long a stopping server waits for clients to close TLS, which idle clients seldom do."""

_MOST_UNSENT = 65536
"""Unsent bytes at which the model waits for the client; asyncio's default suits TCP, for TLS it is eight times this."""

_CONTROL = (b"/v2/health/", b"/v2/repository/")
"""The paths that are served on connections above the limit."""


class Connection(asyncio.BufferedProtocol):
    """Reads requests and keeps their order: one is in flight at a time, from `_start` to `_finish`.

    A subclass serves the requests. `context` is the state that all connections of the listener share; uvicorn calls
    `shutdown`.
    """

    def __init__(self, context: ConnectionContext, server_state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._state = server_state
        self._loop = loop
        self._reader = RequestReader(context.heads, context.limit, context.scratch, context.budget, context.reserve)
        self._busy = False  # a request is in flight
        self._advancing = False  # we are inside the loop that starts requests
        self._stopping = context.draining  # every response from now on says that the connection closes
        self._ending = False  # uvicorn stops: close after the response in flight, whatever it says
        self._spare = False  # there are too many connections: this one is for health checks and the like
        self._unsent = 0  # bytes of responses that are reserved while the client does not read them
        self._refused = False  # further bytes are discarded
        self._keep_alive = True  # the client asked for it, and no response has said otherwise
        self._began_ns = 0  # arrival of the first part of a request in several parts, by `time.monotonic_ns`
        self._linger: asyncio.TimerHandle | None = None
        self._postponed: Message | None = None  # a request that waits for a later turn of the event loop

    # What a subclass does

    @abstractmethod
    def _write_response(self, response: HttpResponse, keep_alive: bool) -> None:
        """Write a whole response, of a request that is complete or of one that is refused before."""

    @abstractmethod
    def _start(self, message: Message) -> None:
        """Begin to serve a request; `_busy` is set. `_finish` must follow, now or later."""

    @abstractmethod
    def _forget(self) -> None:
        """Cancel the request: the client no longer waits for the response."""

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve the connection, within the limit of connections."""
        self._transport = cast("asyncio.Transport", transport)
        self._secure = self._transport.get_extra_info("sslcontext") is not None
        if self._secure:
            self._transport.set_write_buffer_limits(_MOST_UNSENT)
        self._flow = Flow(self._transport)
        connections = cast("set[Connection]", self._state.connections)
        limits = self._context.limits
        if len(connections) >= limits.connections and not make_room(connections, self._loop.time()):
            limits = self._limit_to_control(len(connections) + 1)
        connections.add(self)
        self._watch = IdleWatch(
            self._loop, self._transport, self._reader, limits, lambda: self._busy, self._end_overdue
        )

    def _limit_to_control(self, count: int) -> Limits:
        """Restrict a connection above the limit to health checks and the model repository, or refuse it."""
        self._spare = self._stopping = True
        spares = self._context.spares
        waiting = next((each for each in spares if not each.in_use), None) if len(spares) >= SPARE_CONNECTIONS else None
        if waiting is not None:  # a health check sends its request at once
            del spares[waiting]
            waiting.give_way()
        if count > self._context.limits.connections + SPARE_CONNECTIONS and waiting is None:
            self._write_response(error_response(too_many(self._context.limits.connections)), False)
            self._transport.close()
        else:
            spares[self] = None
        return self._context.limits.spare()

    @property
    def idle_since(self) -> float:
        """The loop's time since which the connection idles; infinity while it does not."""
        waits = self._busy or self._reader.missing or self._stopping or self._transport.is_closing()
        return float("inf") if waits else self._watch.moved

    @property
    def in_use(self) -> bool:
        """Whether a request is in flight, or bytes have arrived that were not read yet.

        Many connections are accepted in one turn of the event loop, and read in the next.
        """
        return self._busy or _has_unread_bytes(self._transport)

    def give_way(self) -> None:
        """Close an idle connection in favour of another client."""
        self._transport.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer for the next bytes."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have arrived: serve the requests that they complete."""
        if self._busy or (self._flow.write_paused and self._reader.begun is None):
            self._reader.keep(nbytes)
            if len(self._reader.kept) > self._context.most_pipelined:
                self._flow.pause_reading()
            return
        try:
            event = self._reader.received(nbytes)
        except HttpError as error:
            self._refuse(error)
            return
        if event is None:
            self._watch.begin()
            self._began_ns = self._began_ns or monotonic_ns()
        else:
            self._advance(event)

    def eof_received(self) -> None:
        """EOF from the client: cancel the request in flight, or answer 400 if the request is incomplete."""
        if self._busy:
            self._postponed = None
            self._forget()
        elif self._reader.missing:
            refusal = HttpError(400, f"the request is not complete: {self._reader.missing}")
            self._write_response(error_response(refusal), False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is lost: cancel the request in flight and release everything."""
        self._state.connections.discard(self)
        self._context.spares.pop(self, None)
        self._context.lost.set()
        self._watch.stop()
        if self._linger is not None:
            self._linger.cancel()
        self._reader.discard()
        self._postponed = None
        self._forget()
        self._release_unsent()
        self._flow.resume_writing()

    def pause_writing(self) -> None:
        """The client reads too slowly: start no request until it has caught up."""
        self._unsent = self._transport.get_write_buffer_size()
        self._context.budget.add(self._unsent)
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._watch.drained += 1
        self._release_unsent()
        self._flow.resume_writing()
        if not self._busy:
            self._resume()

    def _release_unsent(self) -> None:
        self._context.budget.release(self._unsent)
        self._unsent = 0

    # What uvicorn and the listener call

    def drain(self) -> None:
        """The server is about to stop: close after the next response, and stay open until then."""
        self._stopping = True

    def shutdown(self) -> None:
        """The server stops: close after the request that is in flight or incomplete, at once without one."""
        self._stopping = self._ending = True
        if self._refused or not (self._busy or self._reader.missing):
            self._close()

    def abort(self) -> None:
        """Close at once: the grace period is over."""
        self._transport.abort()

    # Requests

    def _advance(self, event: Event) -> None:
        """Act on this event and those that follow, until a request is in flight or bytes are missing.

        A loop and not a recursion: a request may be answered while it is submitted, and a client may pipeline many.
        """
        self._advancing = True
        try:
            while event is not None:
                if type(event) is Message:
                    self._busy = True
                    self._keep_alive = event.head.keep_alive
                    turns = self._context.turns
                    if turns.free > 1 and not self._spare:
                        turns.free -= 1
                        self._start(event)
                    else:
                        self._start_in_turn(event)
                elif type(event) is Refusal:
                    self._refuse(event.error)
                else:
                    self._transport.write(wire.CONTINUE)
                if self._busy or self._refused or self._flow.write_paused or self._transport.is_closing():
                    return
                event = self._reader.next_event()
            if self._reader.kept or self._reader.begun is not None:
                self._watch.begin()
        except HttpError as error:
            self._refuse(error)
        finally:
            self._advancing = False

    def _start_in_turn(self, message: Message) -> None:
        """Start a request, or postpone it if the budget of this turn of the event loop is used up."""
        if self._spare and not message.head.path.startswith(_CONTROL):
            self._keep_alive = False
            self._respond(error_response(too_many(self._context.limits.connections)))
            return
        turns = self._context.turns
        if turns.free:
            turns.free -= 1
            if not turns.free:
                turns.refill_soon(self._loop)
            self._start(message)
        else:
            self._postponed = message
            turns.postpone(self._start_postponed)

    def _start_postponed(self) -> None:
        message, self._postponed = self._postponed, None
        if message is not None:
            self._start(message)

    def _resume(self) -> None:
        """Continue with the bytes that arrived while a request was in flight or writing was paused."""
        if self._advancing or self._refused or self._flow.write_paused or self._transport.is_closing():
            return
        if self._reader.kept or self._reader.begun is not None:
            self._continue()
        if self._flow.read_paused and not self._has_enough():
            self._flow.read_on()

    def _continue(self) -> None:
        try:
            event = self._reader.next_event()
        except HttpError as error:
            self._refuse(error)
        else:
            if event is not None:
                self._advance(event)
            elif self._reader.kept or self._reader.begun is not None:
                self._watch.begin()

    def _has_enough(self) -> bool:
        """Whether so many bytes of later requests wait that reading must pause until the one in flight is answered."""
        waits = self._busy or self._flow.write_paused
        return waits and len(self._reader.kept) > self._context.most_pipelined

    def _respond(self, response: HttpResponse) -> None:
        self._write_response(response, self._decide_keep_alive())
        self._finish()

    def _decide_keep_alive(self) -> bool:
        """Whether the response whose head is written now keeps the connection open; `_finish` acts on it.

        The server may begin to drain between the two, when an application or a stream has written its head.
        """
        if self._stopping:
            self._keep_alive = False
        return self._keep_alive

    def _finish(self) -> None:
        """The response is written: continue with the next request, or close."""
        self._busy = False
        self._began_ns = 0
        self._watch.moved = self._loop.time()
        self._watch.began = 0.0
        if self._reader.reserved:
            self._reader.release()
        if self._ending or not self._keep_alive:
            self._close()
        elif self._reader.kept or self._reader.begun is not None or self._flow.read_paused:
            self._resume()

    # Ends

    def _close(self) -> None:
        """Close when everything is sent. TLS waits for the client's close, for at most GOODBYE_SECONDS on shutdown."""
        self._transport.close()
        if self._secure and self._stopping:
            self._linger = self._loop.call_later(GOODBYE_SECONDS, self._hurry)

    def _hurry(self) -> None:
        """Abort on shutdown if everything is sent, otherwise check again later."""
        if self._transport.get_write_buffer_size():
            self._linger = self._loop.call_later(GOODBYE_SECONDS, self._hurry)
        else:
            self._transport.abort()

    def _refuse(self, error: HttpError | NaiadError) -> None:
        """Refuse a request after which the connection cannot be read any further.

        Closing at once would make the system reset the connection, and a client that is still sending would never
        read the response: its bytes are discarded for a while instead.
        """
        self._refused = True
        self._reader.discard()
        self._write_response(error_response(error), False)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._linger = self._loop.call_later(LINGER_SECONDS, self._transport.close)

    def _end_overdue(self) -> None:
        if self._transport.is_closing():
            self._transport.abort()
            return
        if self._reader.missing:
            self._write_response(error_response(HttpError(408, self._watch.reason)), False)
        self._transport.close()


def _has_unread_bytes(transport: asyncio.Transport) -> bool:
    connection = transport.get_extra_info("socket")
    if connection is None or connection.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))

"""One HTTP/1.1 connection under uvicorn: its requests one after the other, and every way in which it can end."""

import asyncio
from abc import abstractmethod
from time import monotonic_ns
from typing import cast

from uvicorn.server import ServerState

from naiad.errors import NaiadError
from naiad_http import wire
from naiad_http.connection_context import ConnectionContext
from naiad_http.cycles import ReadFlow
from naiad_http.idle import IdleWatch
from naiad_http.incoming import Message
from naiad_http.limits import SPARE_CONNECTIONS, Limits, make_room, too_many
from naiad_http.reader import Event, Refusal, RequestReader
from naiad_http.statuses import HttpError, HttpResponse, error_response

LINGER_SECONDS = 5.0
"""How long a refused client may go on sending what nobody reads, so that it gets to reading the refusal."""

GOODBYE_SECONDS = 1.0
"""How long a stopping server waits for clients to end TLS from their side, which those that are idle seldom do."""

_MOST_UNSENT = 65536
"""So many bytes wait for a client before its model waits for it; TCP says so by itself, TLS takes eight times more."""


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
        self._reader = RequestReader(context.heads, context.limit, context.scratch, context.budget)
        self._busy = False  # a request is in flight
        self._advancing = False  # we are inside the loop that starts requests
        self._stopping = context.draining  # the server stops: no further request
        self._spare = False  # there are too many connections: this one is for health checks and the like
        self._unsent = 0  # bytes of answers that are reserved while the client does not read them
        self._refused = False  # whatever still comes is not read
        self._keep_alive = True
        self._began_ns = 0  # when the first part of a request came that comes in several, by `time.monotonic_ns`
        self._linger: asyncio.TimerHandle | None = None
        self._postponed: Message | None = None  # a request that waits for a later turn of the event loop

    # What a subclass does

    @abstractmethod
    def _start(self, message: Message) -> None:
        """Begin to answer a request; `_busy` is set. `_finish` must follow, now or later."""

    @abstractmethod
    def _forget(self) -> None:
        """Nobody waits for the answer any more: give the request up."""

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self._transport = cast("asyncio.Transport", transport)
        self._secure = self._transport.get_extra_info("sslcontext") is not None
        if self._secure:
            self._transport.set_write_buffer_limits(_MOST_UNSENT)
        self._flow = ReadFlow(self._transport)
        connections = cast("set[Connection]", self._state.connections)
        limits = self._context.limits
        if len(connections) >= limits.connections and not make_room(connections, self._loop.time()):
            limits = self._limit_to_control(len(connections) + 1)
        connections.add(self)
        self._watch = IdleWatch(
            self._loop, self._transport, self._reader, limits, lambda: self._busy, self._end_overdue
        )

    def _limit_to_control(self, count: int) -> Limits:
        """Use a connection above the limit for health checks and the model repository, or for nothing."""
        self._spare = self._stopping = True
        spares = self._context.spares
        waiting = next((each for each in spares if not each.busy), None) if len(spares) >= SPARE_CONNECTIONS else None
        if waiting is not None:  # a health check sends its request at once
            del spares[waiting]
            waiting.give_way()
        if count > self._context.limits.connections + SPARE_CONNECTIONS and waiting is None:
            self._write_answer(error_response(too_many(self._context.limits.connections)), False)
            self._transport.close()
        else:
            spares[self] = None
        return self._context.limits.spare()

    @property
    def idle_since(self) -> float:
        """The loop's time from when the connection has nothing to do; infinity while it has."""
        waits = self._busy or self._reader.missing or self._stopping or self._transport.is_closing()
        return float("inf") if waits else self._watch.moved

    @property
    def busy(self) -> bool:
        """Whether a request is in flight."""
        return self._busy

    def give_way(self) -> None:
        """Close an idle connection, so that another client gets in."""
        self._transport.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come: answer the requests that they complete."""
        if self._busy or (self._flow.write_paused and not self._reader.in_body):
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
        """The client sends no more: it is gone, or its request stays a torso."""
        if self._busy:
            self._postponed = None
            self._forget()
        elif self._reader.missing:
            self._write_answer(
                error_response(HttpError(400, f"the request is not complete: {self._reader.missing}")), False
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, and who waited for the answer with it."""
        self._state.connections.discard(self)
        self._context.spares.pop(self, None)
        self._context.on_lost()
        self._watch.stop()
        if self._linger is not None:
            self._linger.cancel()
        self._reader.discard()
        self._postponed = None
        self._forget()
        self._release_unsent()
        self._flow.resume_writing()

    def pause_writing(self) -> None:
        """The client reads slower than we write: start no request until it has caught up."""
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
        """The server is about to stop: close behind the next answer, and stay open until then."""
        self._stopping = True

    def shutdown(self) -> None:
        """The server stops: close after the request that is in flight or on its way, at once without one."""
        self._stopping = True
        if self._refused or not (self._busy or self._reader.missing):
            self._close()

    def abort(self) -> None:
        """The time for a graceful end is over."""
        self._transport.abort()

    # Requests

    def _advance(self, event: Event) -> None:
        """Act on this event and those that follow, until a request is in flight or bytes are missing.

        A loop and not a recursion: an answer may come while its request is submitted, and a client may pipeline many.
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
            if self._reader.kept or self._reader.in_body:
                self._watch.begin()
        except HttpError as error:
            self._refuse(error)
        finally:
            self._advancing = False

    def _start_in_turn(self, message: Message) -> None:
        """Start a request, or leave it to a later turn of the event loop where this one has started its share."""
        if self._spare and not message.head.path.startswith(_CONTROL):
            self._write_answer(error_response(too_many(self._context.limits.connections)), False)
            self._finish()
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
        """Go on with what came while a request was in flight, or while the client did not read."""
        if self._advancing or self._refused or self._transport.is_closing():
            return
        try:
            event = self._reader.next_event()
        except HttpError as error:
            self._refuse(error)
        else:
            if event is not None:
                self._advance(event)
            elif self._reader.kept or self._reader.in_body:
                self._watch.begin()
        if self._flow.read_paused and not self._has_enough():
            self._flow.read_on()

    def _has_enough(self) -> bool:
        """Whether requests wait in such numbers that no more are to be read until the one in flight is answered."""
        waits = self._busy or self._flow.write_paused
        return waits and len(self._reader.kept) > self._context.most_pipelined

    def _answer(self, answer: HttpResponse) -> None:
        self._write_answer(answer, self._keep_alive and not self._stopping)
        self._finish()

    def _write_answer(self, answer: HttpResponse, keep_alive: bool) -> None:
        self._transport.write(wire.whole(answer, self._context.date, keep_alive))

    def _finish(self) -> None:
        """The answer is written: on to the next request, or close."""
        self._busy = False
        self._watch.moved = self._loop.time()
        self._watch.began = 0.0
        if self._reader.reserved:
            self._reader.release()
        if self._stopping or not self._keep_alive:
            self._close()
        elif not self._advancing and not self._flow.write_paused:
            self._resume()

    # Ends

    def _close(self) -> None:
        """Close when the client has everything. Over TLS it has a word in that, for which the watch waits."""
        self._transport.close()
        if self._secure and self._stopping:
            self._linger = self._loop.call_later(GOODBYE_SECONDS, self._hurry)

    def _hurry(self) -> None:
        """The server stops: wait no longer for a client that has everything."""
        if self._transport.get_write_buffer_size():
            self._linger = self._loop.call_later(GOODBYE_SECONDS, self._hurry)
        else:
            self._transport.abort()

    def _refuse(self, error: HttpError | NaiadError) -> None:
        """Answer what cannot be read any further.

        Closing at once would make the system reset the connection, and a client that is still sending would never
        read the answer: what it sends is thrown away for a while instead.
        """
        self._refused = True
        self._reader.discard()
        self._write_answer(error_response(error), False)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._linger = self._loop.call_later(LINGER_SECONDS, self._transport.close)

    def _end_overdue(self) -> None:
        if self._transport.is_closing():
            self._transport.abort()
            return
        if self._reader.missing:
            self._write_answer(error_response(HttpError(408, self._watch.reason)), False)
        self._transport.close()

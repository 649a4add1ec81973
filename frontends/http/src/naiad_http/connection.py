"""One HTTP/1.1 connection under uvicorn: its requests one after the other, and every way in which it can end."""

import asyncio
from abc import abstractmethod
from time import monotonic_ns
from typing import cast

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from naiad_http import wire
from naiad_http.idle import IDLE_SECONDS, IdleWatch
from naiad_http.reader import Event, Message, RequestReader
from naiad_http.site import Site
from naiad_http.statuses import Answer, HttpError, answer_to

LINGER_SECONDS = 5.0
"""How long a refused client may go on sending what nobody reads, so that it gets to reading the refusal."""

GOODBYE_SECONDS = 1.0
"""How long a stopping server waits for clients to end TLS from their side, which those that are idle seldom do."""

_MOST_UNSENT = 65536
"""So many bytes wait for a client before its model waits for it; TCP says so by itself, TLS takes eight times more."""
_MOST_KEPT = 65536
"""So many bytes of pipelined requests are taken in while one is in flight."""


class Connection(asyncio.BufferedProtocol):
    """Reads requests and keeps their order: one is in flight at a time, from `_start` to `_finish`.

    A subclass says what a request does. `site` is what the connection shares with all others of its listener; uvicorn
    calls `shutdown`.
    """

    def __init__(self, site: Site, server_state: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._site = site
        self._state = server_state
        self._loop = loop
        self._reader = RequestReader(site.heads, site.limit, site.scratch)
        self._busy = False  # a request is in flight
        self._advancing = False  # we are inside the loop that starts requests
        self._stopping = False  # the server stops: no further request
        self._refused = False  # whatever still comes is not read
        self._keep_alive = True
        self._began_ns = 0  # when the first part of a request came that comes in several, by `time.monotonic_ns`
        self._linger: asyncio.TimerHandle | None = None

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
        self._flow = FlowControl(self._transport)
        self._watch = IdleWatch(self._loop, self._transport, lambda: self._busy, self._end_idle)
        self._state.connections.add(self)  # type: ignore[arg-type]

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come: answer the requests that they complete."""
        if self._busy or (self._flow.write_paused and not self._reader.in_body):
            self._reader.keep(nbytes)
            if len(self._reader.kept) > _MOST_KEPT:
                self._flow.pause_reading()
            return
        try:
            event = self._reader.received(nbytes)
        except HttpError as error:
            self._refuse(error)
            return
        if event is None:
            self._watch.moved = self._loop.time()
            self._began_ns = self._began_ns or monotonic_ns()
        else:
            self._advance(event)

    def eof_received(self) -> None:
        """The client sends no more: it is gone, or its request stays a torso."""
        if self._busy:
            self._forget()
        elif self._reader.missing:
            self._write_answer(answer_to(HttpError(400, f"the request is not complete: {self._reader.missing}")), False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, and who waited for the answer with it."""
        self._state.connections.discard(self)
        self._site.on_lost()
        self._watch.stop()
        if self._linger is not None:
            self._linger.cancel()
        self._forget()
        self._flow.resume_writing()

    def pause_writing(self) -> None:
        """The client reads slower than we write: start no request until it has caught up."""
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._watch.drained += 1
        self._flow.resume_writing()
        if not self._busy:
            self._resume()

    # What uvicorn and the listener call

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
                    self._start(event)
                else:
                    self._transport.write(wire.CONTINUE)
                if self._busy or self._refused or self._flow.write_paused or self._transport.is_closing():
                    return
                event = self._reader.next_event()
        except HttpError as error:
            self._refuse(error)
        finally:
            self._advancing = False

    def _resume(self) -> None:
        """Go on with what came while a request was in flight, or while the client did not read."""
        if self._advancing or self._refused or self._transport.is_closing():
            return
        self._flow.resume_reading()
        try:
            event = self._reader.next_event()
        except HttpError as error:
            self._refuse(error)
        else:
            self._advance(event)

    def _answer(self, answer: Answer) -> None:
        self._write_answer(answer, self._keep_alive and not self._stopping)
        self._finish()

    def _write_answer(self, answer: Answer, keep_alive: bool) -> None:
        self._transport.write(wire.whole(answer, self._site.date, keep_alive))

    def _finish(self) -> None:
        """The answer is written: on to the next request, or close."""
        self._busy = False
        self._watch.moved = self._loop.time()
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

    def _refuse(self, error: HttpError) -> None:
        """Answer what cannot be read any further.

        Closing at once would make the system reset the connection, and a client that is still sending would never
        read the answer: what it sends is thrown away for a while instead.
        """
        self._refused = True
        self._reader.discard()
        self._write_answer(answer_to(error), False)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._linger = self._loop.call_later(LINGER_SECONDS, self._transport.close)

    def _end_idle(self) -> None:
        if self._transport.is_closing():
            self._transport.abort()
            return
        if self._reader.missing:
            reason = f"no bytes came for {IDLE_SECONDS:g} seconds: {self._reader.missing}"
            self._write_answer(answer_to(HttpError(408, reason)), False)
        self._transport.close()

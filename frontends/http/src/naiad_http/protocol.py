"""One HTTP/1.1 connection under uvicorn: infer requests go straight to the server, all others to the ASGI application.

An infer request makes no task, no ASGI cycle and no future: the bytes are decoded, the request is submitted, and the
server calls back with the outcome, which is written. One request is in flight at a time, so that answers to pipelined
requests keep their order.
"""

import asyncio
from functools import partial
from typing import Any, cast

from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from naiad.errors import NaiadError
from naiad.types import Request
from naiad_http import wire
from naiad_http.codec import AnswerForm
from naiad_http.codec.envelope import Envelope
from naiad_http.cycles import make_cycle
from naiad_http.idle import IDLE_SECONDS, IdleWatch
from naiad_http.reader import Event, Message, RequestReader
from naiad_http.site import Call, Site
from naiad_http.statuses import Answer, HttpError, Outcome, answer_to, unexpected

LINGER_SECONDS = 5.0
"""How long a refused client may go on sending what nobody reads, so that it gets to reading the refusal."""

_MOST_KEPT = 65536
"""So many bytes of pipelined requests are taken in while one is in flight."""


class HttpProtocol(asyncio.BufferedProtocol):
    """One connection. uvicorn makes it and calls `shutdown`; `site` is what it shares with all others."""

    def __init__(
        self,
        site: Site,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._site = site
        self._config = config
        self._state = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._reader = RequestReader(site.heads, site.limit, site.scratch)
        self._busy = False  # a request is in flight
        self._advancing = False  # we are inside the loop that starts requests
        self._stopping = False  # the server stops: no further request
        self._refused = False  # whatever still comes is not read
        self._keep_alive = True
        self._call: Call | None = None
        self._cycle: RequestResponseCycle | None = None
        self._linger: asyncio.TimerHandle | None = None

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self._transport = cast("asyncio.Transport", transport)
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
        self._flow.resume_writing()
        if not self._busy:
            self._resume()

    # What uvicorn and the listener call

    def shutdown(self) -> None:
        """The server stops: close after the request that is in flight or on its way, at once without one."""
        self._stopping = True
        if self._refused or not (self._busy or self._reader.missing):
            self._transport.close()

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

    def _start(self, message: Message) -> None:
        head = message.head
        self._busy = True
        self._keep_alive = head.keep_alive
        if head.direct and head.envelope is not None:
            self._start_inference(head.envelope, message)
        elif head.refusal is not None:
            self._answer(answer_to(head.refusal))
        else:
            self._start_application(message)

    def _start_inference(self, envelope: Envelope, message: Message) -> None:
        request: Request | None = None
        try:
            request, form = self._site.inference.decode(envelope, message.front, message.rest)
            call = self._site.submit(request, partial(self._deliver, request, form))
        except NaiadError as error:
            self._answer(answer_to(error, request.id if request else ""))
        except Exception as error:  # noqa: BLE001 - a bug must neither leave the client waiting nor end the connection
            self._answer(unexpected(error, request.id if request else ""))
        else:
            if self._busy:  # the answer may have come already
                self._call = call

    def _deliver(self, request: Request, form: AnswerForm, outcome: Outcome) -> None:
        """The server's answer, or its error: write it."""
        encoded = self._site.inference.encode(outcome, request, form)
        if isinstance(encoded, Answer):
            if self._call is not None:  # a model that streams would have more to say
                self._call.cancel()
            self._answer(encoded)
            return
        keep_alive = self._keep_alive and not self._stopping
        self._transport.writelines(wire.success(encoded, self._site.date, keep_alive))
        self._finish()

    def _start_application(self, message: Message) -> None:
        keep_alive = self._keep_alive and not self._stopping
        cycle = make_cycle(message, self._transport, self._flow, self._state, keep_alive, self._finish)
        self._cycle = cycle
        task = self._loop.create_task(cycle.run_asgi(self._config.loaded_app))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def _answer(self, answer: Answer) -> None:
        self._write_answer(answer, self._keep_alive and not self._stopping)
        self._finish()

    def _write_answer(self, answer: Answer, keep_alive: bool) -> None:
        self._transport.write(wire.whole(answer, self._site.date, keep_alive))

    def _finish(self) -> None:
        """The answer is written: on to the next request, or close."""
        self._busy = False
        self._call = self._cycle = None
        self._watch.moved = self._loop.time()
        if self._stopping or not self._keep_alive:
            self._transport.close()
        elif not self._advancing and not self._flow.write_paused:
            self._resume()

    # Ends

    def _forget(self) -> None:
        """Nobody waits for the answer any more."""
        call, cycle = self._call, self._cycle
        self._call = self._cycle = None
        if call is not None:
            call.cancel()
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()

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
        if self._reader.missing:
            reason = f"no bytes came for {IDLE_SECONDS:g} seconds: {self._reader.missing}"
            self._write_answer(answer_to(HttpError(408, reason)), False)
        self._transport.close()

"""Responses that a model sends one by one: from its threads to the caller, no faster than the caller reads."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic_ns, sleep
from typing import NamedTuple

from naiad._engine.call import Call
from naiad.backend import Reply
from naiad.codec import ReplyReader
from naiad.errors import InternalError, ModelFailedError, NaiadError
from naiad.foreign_errors import raise_interrupt
from naiad.server import Outcome
from naiad.threads import on_event_loop
from naiad.types import Response

_logger = logging.getLogger("naiad.model")

WINDOW, WINDOW_BYTES = 64, 256 << 10
"""The most responses of one request, and bytes of them, on their way to the event loop; then the model waits."""
_YIELD_S = 0.00002
"""So long a model that has sent a first response leaves the interpreter to the event loop: callers wait for it most."""


class Sent(NamedTuple):
    """A response on its way to the event loop, and the nanoseconds that making and reading it took."""

    outcome: Outcome
    infer_ns: int
    output_ns: int


@dataclass(slots=True, eq=False)
class ResponseStream:
    """The responses of one call. `post` and `abandon` are for any thread; everything else is for the event loop's.

    One wake-up of the loop takes over all that was sent meanwhile. `ended` says, on the loop's thread, that the model
    has said that all is sent; `taken` is called there with the stream and what was sent. `slot` is where the call
    executes.

    There is no lock, and nothing of the queue runs inside `post`: the garbage collector may drop a sender, or run a
    finalizer of the model's that sends, at any step of the code below and of the queue's, on the thread that is in it.
    """

    call: Call
    slot: int
    _reader: ReplyReader
    _loop: asyncio.AbstractEventLoop
    _taken: "Callable[[ResponseStream, Sequence[Sent]], None]"
    _suspend: "SuspendSender | None" = None
    count: int = 0
    ended: bool = False
    opened_ns: int = field(default_factory=monotonic_ns)
    _mark_ns: int = field(default_factory=monotonic_ns)
    _outbox: deque[Sent] = field(default_factory=deque)
    _rooms: "deque[Future[None]]" = field(default_factory=deque)
    _size: int = 0  # of what is in the outbox, more or less: threads add to it at the same time
    _flush_scheduled: bool = False
    _closed: bool = False
    _held: Response | None = None

    @property
    def is_at_home(self) -> bool:
        """Whether the running thread is the event loop's, which must never wait."""
        return on_event_loop(self._loop)

    def post(self, reply: Reply | NaiadError | None, final: bool) -> "Future[None] | None":
        """Send; None when there is room for more, else a future that is done when there is."""
        if self._closed:
            raise InternalError(f"Response sender has been closed: model '{self._reader.model}' has sent its last one")
        started_ns = monotonic_ns()
        outcome = self._outcome(reply, final)
        if outcome is None:
            return None
        now_ns = monotonic_ns()
        sent = Sent(outcome, max(0, started_ns - self._mark_ns), now_ns - started_ns)
        self._mark_ns = now_ns
        if final:
            self._closed = True
        elif self._is_unwanted() and self._is_crowded():
            return None  # what a model sends all the same must not pile up
        elif not isinstance(outcome, NaiadError):
            for tensor in outcome.outputs.values():
                self._size += tensor.nbytes
        self._outbox.append(sent)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            try:
                self._loop.call_soon_threadsafe(self.flush)
            except RuntimeError:  # the loop is closed: nobody waits for a response any more
                _logger.debug("model '%s' sent a response after its event loop had ended", self._reader.model)
            if not (self.count or final or self.is_at_home):
                sleep(_YIELD_S)
        return self._wait_for_room() if not final and (self._is_crowded() or self.call.is_held_up) else None

    def abandon(self) -> None:
        """The model has dropped its sender: if it has not said that all is sent, it never will."""
        if self._closed:
            return
        error = ModelFailedError(
            f"model '{self._reader.model}' dropped the response sender of a request without saying that all is sent; "
            "send the last response with the final flag"
        )
        self._held = None
        self.post(error, final=True)

    def release(self) -> None:
        """Let the senders that wait for room go on, until there is none: they may send again within this loop."""
        while self._rooms and not self._is_full():
            try:
                self._rooms.popleft().set_result(None)
            except IndexError:  # another thread may release as well
                return
            except BaseException as error:  # a callback of the model's on this future
                raise_interrupt(error)
                _logger.exception("a sender of model '%s' that waited for room failed", self._reader.model)

    def _wait_for_room(self) -> "Future[None] | None":
        if self._is_unwanted():
            return None
        room: Future[None] = Future()
        room.set_running_or_notify_cancel()  # who stops waiting must not cancel what `release` sets
        self._rooms.append(room)
        if not self._is_full():  # room that was made meanwhile may not have been seen
            self.release()
        return room if self._suspend is None else self._suspend(self, room)

    def _is_full(self) -> bool:
        return (self._is_crowded() or self.call.is_held_up) and not self._is_unwanted()

    def _is_crowded(self) -> bool:
        """Never when the outbox is empty, for only what empties it makes room."""
        waiting = len(self._outbox)
        return waiting >= WINDOW or (waiting > 0 and self._size >= WINDOW_BYTES)

    def _is_unwanted(self) -> bool:
        return self.call.over or self._loop.is_closed()

    def _outcome(self, reply: Reply | NaiadError | None, final: bool) -> Outcome | None:
        """What the caller gets, None for what is held back: a model that is not decoupled sends one response."""
        request = self.call.request
        if reply is None:
            if not final:
                raise InternalError("there is neither a response nor a final flag to send; give one of them")
            return self._last(request.id)
        if isinstance(reply, NaiadError):
            if final or not self._reader.decoupled:
                self._held = None if final else self._response(request.id, error=reply)
                return reply if final else None
            return self._response(request.id, error=reply)
        response = self._reader.response(reply, request, self.call.ticket.batch_size)
        response.final = final
        if self._reader.decoupled:
            response.explicit = final and not response.outputs
            return response
        if self._held is not None:
            raise ModelFailedError(
                f"Non-decoupled model '{self._reader.model}' cannot send more than one response; set "
                "model_transaction_policy { decoupled: true } in its configuration"
            )
        if not final:
            self._held = response
            return None
        return response

    def _last(self, request_id: str) -> Outcome:
        if self._reader.decoupled:
            return self._response(request_id, final=True)
        held, self._held = self._held, None
        if held is None:
            return ModelFailedError(
                f"Non-decoupled model '{self._reader.model}' cannot send complete final before sending a response"
            )
        if held.error is not None:
            return held.error
        held.final = True
        return held

    def _response(self, request_id: str, error: NaiadError | None = None, final: bool = False) -> Response:
        return Response(self._reader.model, self._reader.version, request_id, {}, final=final, error=error)

    def flush(self) -> None:
        """Take over all that was sent."""
        self._flush_scheduled, self._size = False, 0  # before it is empty: a later response schedules a flush again
        sent = [self._outbox.popleft() for _ in range(len(self._outbox))]
        try:
            self._taken(self, sent)
        finally:
            if not self.call.is_held_up:
                self.release()


SuspendSender = Callable[[ResponseStream, "Future[None]"], "Future[None]"]
"""Suspends the execution of a sender until there is room; returns what the sender waits for. For any thread."""


class StreamSender:
    """The sender that a model holds; see `naiad.batch.Sender`. Dropping it ends its stream."""

    __slots__ = ("_stream",)

    def __init__(self, stream: ResponseStream) -> None:
        self._stream = stream

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        """Send, and wait while the caller reads too slowly; whether anybody still wants the responses."""
        room = self._stream.post(reply, final)
        if room is not None and not self._stream.is_at_home:
            room.result()
        return not self._stream.call.request.cancelled

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> "Future[None] | None":
        """Send without waiting; None when there is room, else a future that is done when there is."""
        return self._stream.post(reply, final)

    def is_cancelled(self) -> bool:
        """Whether nobody wants further responses."""
        return self._stream.call.request.cancelled

    def __del__(self) -> None:
        self._stream.abandon()

"""The senders of an instance in its own process: responses travel to the server, which makes room for more."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from naiad.backend import Reply
from naiad.errors import InternalError, NaiadError
from naiad.types import Request
from naiad_process_workers.codec import Encoder
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import LinkClosedError
from naiad_process_workers.messages import MANY_STRINGS, Kind, put_reply

_logger = logging.getLogger("naiad.model")

WINDOW = 32
"""The most responses of one request on their way to the server; then the model waits."""


class SenderState:
    """What the control thread knows of a sender: the responses on their way, and who waits for room."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._lock = threading.Lock()
        self._on_their_way = 0
        self._waiting: deque[Future[None]] = deque()

    def sent(self) -> "Future[None] | None":
        """A response was sent: None when there is room for more, else a future that is done when there is."""
        with self._lock:
            self._on_their_way += 1
            if self._on_their_way < WINDOW or self.request.cancelled:
                return None
            room: Future[None] = Future()
            room.set_running_or_notify_cancel()
            self._waiting.append(room)
        return room

    def make_room(self) -> None:
        """The server has taken a response, or the request is cancelled."""
        with self._lock:
            self._on_their_way -= 1
            waiting = list(self._waiting)
            self._waiting.clear()
        for room in waiting:
            try:
                room.set_result(None)
            except Exception:
                _logger.exception("a sender that waited for room failed")


class RemoteSender:
    """The sender of one request: see `naiad.batch.Sender`. Dropping it before the last response fails the request."""

    __slots__ = ("_closed", "_ended", "_index", "_number", "_work", "state")

    def __init__(
        self, work: Connection, number: int, index: int, request: Request, ended: Callable[[int, int], None]
    ) -> None:
        self._work = work
        self._number = number
        self._index = index
        self._ended = ended
        self._closed = False
        self.state = SenderState(request)
        encoder = Encoder(work)
        encoder.value(index)
        work.put(Kind.OPENED, number, encoder.body())

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        """Send a response, and wait while the caller reads slowly; False once the request is cancelled."""
        room = self.post(reply, final)
        if room is not None:
            room.result()
        return not self.state.request.cancelled

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> "Future[None] | None":
        """Send without waiting: None, or a future that is done when the caller takes more."""
        if self._closed:
            raise InternalError("Response sender has been closed: the last response was sent")
        if reply is None and not final:
            raise InternalError("there is neither a response nor a final flag to send; give one of them")
        encoder = Encoder(self._work)
        encoder.value([self._index, final])
        put_reply(encoder, reply)
        self._closed = final
        kind = Kind.RESPONSE if encoder.string_bytes < MANY_STRINGS else Kind.STRING_RESPONSE
        self._work.send(kind, self._number, encoder.body(), encoder.kept)
        if final:
            self._ended(self._number, self._index)
            return None
        return self.state.sent()

    def is_cancelled(self) -> bool:
        """Whether the request is cancelled."""
        return self.state.request.cancelled

    def __del__(self) -> None:
        if not self._closed:
            encoder = Encoder(self._work)
            encoder.value(self._index)
            with suppress(LinkClosedError):
                self._work.send(Kind.DROPPED, self._number, encoder.body())
            self._ended(self._number, self._index)

"""Connection limits of an embedded uvicorn: the number of connections, their timeouts, and their unread bytes.

uvicorn limits none of these before a request is complete: clients that keep silent would use up the open files of the
process, and with them the ports of inference.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, cast

from uvicorn import Config
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.server import ServerState

from naiad_kit.frontends.connection_limits import (
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    SLOWEST_BYTES_PER_SECOND,
    open_file_limit,
)

Message = MutableMapping[str, Any]
Application = Callable[[Any, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]

_MOST_UNREAD = 1 << 19
"""Bytes of a connection that no application has read: uvicorn pauses at 64 KiB of a body, and never within a head."""
_FEWEST, _MOST = 16, 512
_FILES_PER_CONNECTION = 16
_CONNECTION = "naiad.connection"
"""Key of the ASGI state: the connection of a request."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of a listener's connections, in seconds but for `most`.

    `most` connections are served at a time. A client may take `head` for the head of a request, `body` for its body and
    a second more for each 4 KiB that have come, and may read nothing of a response for `stall`.
    """

    most: int
    head: float = HEAD_SECONDS
    body: float = BODY_SECONDS
    stall: float = IDLE_SECONDS


def usual_limits() -> ConnectionLimits:
    """A sixteenth of the open files as connections, from 16 to 512."""
    return ConnectionLimits(max(_FEWEST, min(open_file_limit() // _FILES_PER_CONNECTION, _MOST)))


class BoundedConnections:
    """The connections of one listener: `make` is for `uvicorn.Config(http=…)`, whose application must be `watched`.

    At the limit a new client replaces the one that has been without a request for longest; if all have one, it is cut
    off.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.open: set[BoundedConnection] = set()
        self.waiting: dict[BoundedConnection, None] = {}  # those without a request, the oldest first

    def make(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "BoundedConnection":
        """A connection; uvicorn calls this for each client."""
        return BoundedConnection(self, config, server_state, app_state)

    def make_room(self) -> bool:
        """Whether there is room for a new client, perhaps because an idle one is cut off."""
        if len(self.open) >= self.limits.most and self.waiting:
            next(iter(self.waiting)).abort()
        return len(self.open) < self.limits.most

    def watched(self, application: Application) -> Application:
        """The application, wrapped so that each request reports its begin, reads and end to its connection."""

        async def watched(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
            connection: BoundedConnection | None = scope.get("state", {}).get(_CONNECTION)
            if connection is None:
                await application(scope, receive, send)
                return

            async def receive_watched() -> Message:
                message: Message = await receive()
                connection.has_read(message)
                return message

            async def send_watched(message: Message) -> None:
                connection.responds()
                await send(message)

            connection.begin()
            try:
                await application(scope, receive_watched, send_watched)
            finally:
                connection.end()

        return watched


class BoundedConnection(asyncio.Protocol):
    """One connection: forwards the calls of the event loop to the protocol of uvicorn, within the limits."""

    def __init__(
        self, connections: BoundedConnections, config: Config, server_state: ServerState, app_state: dict[str, Any]
    ) -> None:
        self._connections = connections
        self._limits = connections.limits
        self._loop = asyncio.get_running_loop()
        make: Any = AutoHTTPProtocol
        self._protocol: Any = make(config, server_state, {**app_state, _CONNECTION: self})
        self._transport: asyncio.Transport | None = None
        self._in_flight = 0
        self._unread = 0
        self._received = 0  # since the request in flight began
        self._began = 0.0
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, within the limit of connections."""
        if not self._connections.make_room():
            cast("asyncio.Transport", transport).abort()
            return
        self._transport = cast("asyncio.Transport", transport)
        self._connections.open.add(self)
        self._wait(self._limits.head)
        self._protocol.connection_made(self._transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, unless too many wait."""
        if self._transport is None:
            return
        self._received += len(data)
        self._unread += len(data)
        if self._unread > _MOST_UNREAD:
            self.abort()
        else:
            self._protocol.data_received(data)

    def eof_received(self) -> None:
        """EOF from the client."""
        if self._transport is not None:
            self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is lost: stop its timers and release it."""
        for timer in (self._deadline, self._stall):
            if timer is not None:
                timer.cancel()
        was_made, self._transport = self._transport is not None, None
        self._connections.open.discard(self)
        self._connections.waiting.pop(self, None)
        if was_made:
            self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._protocol.pause_writing()
        if self._stall is None:
            self._stall = self._loop.call_later(self._limits.stall, self.abort)

    def resume_writing(self) -> None:
        """The client has caught up."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        self._protocol.resume_writing()

    # What becomes of requests

    def begin(self) -> None:
        """The head of a request is complete."""
        self._in_flight += 1
        self._connections.waiting.pop(self, None)
        self._received, self._began = 0, self._loop.time()
        self._set_deadline(self._limits.body)

    def has_read(self, message: Message) -> None:
        """The application has read a part of the request's body."""
        if message["type"] == "http.request":
            self._unread = max(0, self._unread - len(message.get("body", b"")))
            if not message.get("more_body", False):
                self._set_deadline(None)

    def responds(self) -> None:
        """The application has begun its response, so that no body is waited for."""
        self._set_deadline(None)

    def end(self) -> None:
        """The response is complete."""
        self._in_flight -= 1
        self._unread = 0
        if self in self._connections.open and not self._in_flight:
            self._wait(IDLE_SECONDS + self._limits.head)

    def abort(self) -> None:
        """Cut the client off."""
        self._connections.open.discard(self)
        self._connections.waiting.pop(self, None)
        if self._transport is not None:
            self._transport.abort()

    def _wait(self, seconds: float) -> None:
        """There is no request: one must come within that time."""
        self._began = 0.0
        self._connections.waiting.pop(self, None)
        self._connections.waiting[self] = None
        self._set_deadline(seconds)

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self._loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        """Cut a silent client off; one whose body still comes fast enough gets more time."""
        allowed = self._limits.body + self._received / SLOWEST_BYTES_PER_SECOND
        more = self._began + allowed - self._loop.time() if self._began else 0.0
        if more > 0:
            self._set_deadline(more)
        else:
            self.abort()

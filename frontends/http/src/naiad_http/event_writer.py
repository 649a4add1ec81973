"""Writer of event streams: the events of one turn of the event loop are written together."""

import asyncio
from collections.abc import Callable

from naiad_http import wire

_ENOUGH = 65536
"""This many bytes are written at once, so that back-pressure reaches the model of a slow reader before it goes on."""


class EventWriter:
    """Writes one stream. Small events of one turn of the event loop become one chunk and one system call.

    The result of `head` is written with the first events. It declares a chunked body, unless `chunked` is false: an
    HTTP/1.0 client reads until the connection is closed. `on_end` is called when everything is handed to the transport.
    `sent` are the bytes of events that were handed to it.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        head: Callable[[], bytes],
        chunked: bool,
        on_end: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._make_head = head
        self._begun = False
        self._chunked = chunked
        self._on_end = on_end
        self.sent = 0
        self._events: list[bytes] = []
        self._size = 0
        self._scheduled = False
        self._ended = False

    def write(self, event: bytes) -> None:
        """Write these bytes, at the latest in the next turn of the event loop."""
        self._events.append(event)
        self._size += len(event)
        if self._size >= _ENOUGH:
            self._write_out()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def end(self, event: bytes) -> None:
        """Write all queued events, these bytes and the end of the stream, at once."""
        self._events.append(event)
        self._size += len(event)
        self._ended = True
        self._write_out()
        self._on_end()

    def _flush(self) -> None:
        self._scheduled = False
        if self._events and not self._ended:
            self._write_out()

    def _write_out(self) -> None:
        if self._transport.is_closing():
            return
        events, self._events = self._events, []
        size, self._size = self._size, 0
        self.sent += size
        buffers = [] if self._begun else [self._make_head()]
        self._begun = True
        if self._chunked and size:
            buffers.append(b"%x\r\n" % size)
            events.append(b"\r\n")
        buffers += events
        if self._chunked and self._ended:
            buffers.append(wire.LAST_CHUNK)
        self._transport.writelines(buffers)

"""Outbox of a connection: frames to be sent, within the windows of the client (RFC 9113, section 5.2)."""

from collections import deque
from collections.abc import Sequence
from math import inf

from naiad_grpc.http2.frames import (
    DEFAULT_FRAME,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    HEAD,
    HEADERS,
    MAX_WINDOW,
    ErrorCode,
    Http2Error,
    Http2StreamError,
    frame,
)
from naiad_grpc.http2.streams import Buffer, Stream

_SHORT = 16384
"""Messages up to this size are joined with their frames, and fit into one; longer ones are written as they are."""
_LEAST_PROGRESS = 1024
"""Bytes that a stream must send, or all that waits, to count as moving: a window of one byte is a stall."""
_ROUND = 65536
"""Bytes that one stream sends before the next one, when several wait for the window of the connection."""

_TABLE_OF_SIZE_0 = b"\x20"
"""A change of the dynamic table's size, at the start of a header block (RFC 7541, section 6.3)."""

_pack = HEAD.pack


class Outbox:
    """Writes frames, and queues data for which a window has no room.

    `frames` are those to be sent now. While `held`, the transport has more than it can send, and data waits; `waiting`
    are the streams, by number, whose data waits for that or for a window. `moved_at` is when data that waited was last
    sent, 1 KiB at least.
    """

    __slots__ = (
        "_announce_table",
        "_moved",
        "_table_resized",
        "frames",
        "held",
        "initial_window",
        "max_frame",
        "moved_at",
        "waiting",
        "window",
    )

    def __init__(self) -> None:
        self.frames: list[Buffer] = []
        self.window = DEFAULT_WINDOW
        self.initial_window = DEFAULT_WINDOW
        self.max_frame = DEFAULT_FRAME
        self.held = False
        self._announce_table = self._table_resized = False
        self.waiting: dict[int, Stream] = {}
        self.moved_at = -inf
        self._moved = 0

    def respond(
        self, stream: Stream, head: bytes, content: Sequence[Buffer], size: int, trailers: bytes, now: float
    ) -> bool:
        """Send a whole response: header block, data of `size` bytes, trailer block. False if some of it must wait."""
        stream_id = stream.id
        if self._announce_table:
            head = self._announcing(head)
        if size <= self.window and size <= stream.window and size <= _SHORT and not self.held:
            self.window -= size
            self.frames.append(
                b"".join(
                    (
                        _pack(len(head) << 8 | HEADERS, END_HEADERS, stream_id),
                        head,
                        _pack(size << 8, 0, stream_id),
                        *content,
                        _pack(len(trailers) << 8 | HEADERS, END_HEADERS | END_STREAM, stream_id),
                        trailers,
                    )
                )
            )
            return True
        self.frames.append(frame(HEADERS, END_HEADERS, stream_id, head))
        sent = self.send_data(stream, content, now)
        return self.send_trailers(stream, trailers) and sent

    def send_head(self, stream: Stream, block: bytes) -> None:
        """Send a header block."""
        if self._announce_table:
            block = self._announcing(block)
        self.frames.append(frame(HEADERS, END_HEADERS, stream.id, block))

    def send_data(self, stream: Stream, content: Sequence[Buffer], now: float) -> bool:
        """Send data. False if some of it must wait."""
        if stream.queue is not None:
            size = sum(map(len, content))
            stream.queue.extend(content)
            stream.queued += size
            stream.stalled_at += size
            return False
        size = sum(map(len, content))
        if size <= self.window and size <= stream.window and size <= _SHORT and not self.held:
            self.window -= size
            stream.window -= size
            self.frames.append(b"".join((_pack(size << 8, 0, stream.id), *content)))
            return True
        stream.queue = deque(content)
        stream.queued = size
        if self._flush(stream, MAX_WINDOW):
            return True
        stream.stalled_since, stream.stalled_at = now, stream.queued
        self.waiting[stream.id] = stream
        return False

    def send_trailers(self, stream: Stream, block: bytes) -> bool:
        """End the stream with a trailer section, after its data. False if that must wait."""
        if stream.queue is not None:
            stream.trailers = block
            return False
        if self._announce_table:
            block = self._announcing(block)
        self.frames.append(frame(HEADERS, END_HEADERS | END_STREAM, stream.id, block))
        return True

    def resize_table(self) -> None:
        """The client has shrunk its dynamic table: the next header block must announce that (RFC 7541, section 4.2).

        Our blocks use no dynamic table, so the size 0, announced once, is right for every size that the client sets.
        """
        if not self._table_resized:
            self._table_resized = self._announce_table = True

    def _announcing(self, block: bytes) -> bytes:
        """The header block with the new size of the dynamic table."""
        self._announce_table = False
        return _TABLE_OF_SIZE_0 + block

    def forget(self, stream: Stream) -> None:
        """Drop the data of a stream that has ended."""
        self.waiting.pop(stream.id, None)
        stream.queue = stream.trailers = None
        stream.queued = 0

    def widen(self, increment: int) -> None:
        """A WINDOW_UPDATE for the connection. Raises Http2Error for one that is too large."""
        self.window += increment
        if self.window > MAX_WINDOW:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "the window of the connection overflows")

    def widen_stream(self, stream: Stream, increment: int) -> None:
        """A WINDOW_UPDATE for a stream. Raises Http2StreamError for one that is too large."""
        stream.window += increment
        if stream.window > MAX_WINDOW:
            raise Http2StreamError(stream.id, ErrorCode.FLOW_CONTROL_ERROR, "the window of the stream overflows")

    def change_initial_window(self, size: int, streams: Sequence[Stream]) -> None:
        """SETTINGS_INITIAL_WINDOW_SIZE: the windows of all streams change with it. Raises Http2Error."""
        change, self.initial_window = size - self.initial_window, size
        for stream in streams:
            stream.window += change
            if stream.window > MAX_WINDOW:
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "the window of a stream overflows")

    def pump(self, now: float) -> list[Stream]:
        """Send the data that the windows have room for, by turns. Returns the streams whose queues became empty."""
        emptied: list[Stream] = []
        while self.waiting and self.window > 0 and not self.held:
            before = self.window
            for stream in tuple(self.waiting.values()):
                if self.window <= 0:
                    break
                if stream.window <= 0:
                    continue
                if self._flush(stream, _ROUND if len(self.waiting) > 1 else MAX_WINDOW):
                    del self.waiting[stream.id]
                    emptied.append(stream)
                    continue
                self.waiting[stream.id] = self.waiting.pop(stream.id)  # the next update is for those behind it
                if stream.stalled_at - stream.queued >= _LEAST_PROGRESS:
                    stream.stalled_since, stream.stalled_at = now, stream.queued
            if self.window == before:
                break
            self._moved += before - self.window
            if self._moved >= _LEAST_PROGRESS:
                self.moved_at, self._moved = now, 0
        return emptied

    def _flush(self, stream: Stream, most: int) -> bool:
        """Send up to `most` bytes of a stream's queue, then its trailers; whether all is sent."""
        queue = stream.queue
        if queue is None:
            return True
        room = 0 if self.held else min(stream.window, self.window, most)
        used = 0
        while queue:
            size = min(stream.queued - used, self.max_frame, room - used)
            if size <= 0 and stream.queued > used:
                break
            self.frames.append(_pack(max(size, 0) << 8, 0, stream.id))
            self._take(queue, size)
            used += size
        stream.queued -= used
        stream.window -= used
        self.window -= used
        if queue:
            return False
        stream.queue = None
        if stream.trailers is not None:
            if self._announce_table:
                stream.trailers = self._announcing(stream.trailers)
            self.frames.append(frame(HEADERS, END_HEADERS | END_STREAM, stream.id, stream.trailers))
            stream.sent_all = True
        return True

    def _take(self, queue: "deque[Buffer]", size: int) -> None:
        """Move `size` bytes from the queue to the frames."""
        while size > 0 or (queue and not queue[0]):
            first = queue.popleft()
            if len(first) <= size:
                size -= len(first)
                self.frames.append(first)
            else:
                view = memoryview(first)
                self.frames.append(view[:size])
                queue.appendleft(view[size:])
                size = 0

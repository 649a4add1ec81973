"""The server's end of an HTTP/2 connection: its streams, what it sends on them, and how it closes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from naiad_grpc.http2 import peer_settings
from naiad_grpc.http2.budgets import OUR_RESETS, Budgets
from naiad_grpc.http2.events import ConnectionEnded, Event, OutputSent, StreamEnded
from naiad_grpc.http2.frames import (
    DEFAULT_FRAME,
    DEFAULT_WINDOW,
    LONGEST_FRAME,
    MAX_WINDOW,
    PING,
    ErrorCode,
    Http2Error,
    Http2StreamError,
    frame,
    goaway,
    rst_stream,
    settings,
    window_update,
)
from naiad_grpc.http2.header_blocks import MOST_LIST_BYTES
from naiad_grpc.http2.outbox import Outbox
from naiad_grpc.http2.states import State
from naiad_grpc.http2.streams import Buffer, Stream
from naiad_grpc.http2.timers import Action, Timeouts, Timers

_HTTP1_TEXT = b"This port serves gRPC over HTTP/2 only.\n"
_HTTP1_HEAD = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
_DRAIN_PING = b"drained?"
_DRAIN_SECONDS = 1.0
"""How long the final GOAWAY waits for the answer to the ping before it."""
_PING = b"are you?"
MOST_UNREAD_FRAMES = 10_000
"""Frames that may wait for a client that does not read (CVE-2019-9512, 9514, 9515)."""
_REMEMBERED = 4096
"""Streams that we have reset, whose frames may still be on their way."""
_HALF_CLOSED = State.HALF_CLOSED
_REFUSED_BYTES = 1024
"""The window behind the last bytes of a request that lets a client send more and be refused, instead of waiting."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a connection: concurrent streams, and the windows of a stream and of the connection in bytes."""

    streams: int = 1024
    stream_window: int = 1 << 20
    window: int = 8 << 20
    timeouts: Timeouts = field(default_factory=Timeouts)


class Endpoint:
    """The streams of a connection, and the frames that are sent on them.

    Frames to be sent are in `outbox.frames`, for the owner of the connection to take. When `ended`, the connection must
    be closed once they are sent. What is sent or granted on a stream that has ended is dropped: its StreamEnded may be
    behind other events that the owner acts on first.
    """

    def __init__(self, limits: Limits, now: float) -> None:
        self.outbox = Outbox()
        self.streams: dict[int, Stream] = {}
        self.ended = False
        self._limits = limits
        self._timers = Timers(limits.timeouts, now)
        self._budgets = Budgets()
        self._highest = 0
        self._last_allowed = MAX_WINDOW
        self._reset_ids: dict[int, None] = {}
        self._draining = False
        self._drain_at: float | None = None
        self._now = now
        announced = {
            peer_settings.HEADER_TABLE_SIZE: 0,
            peer_settings.MAX_CONCURRENT_STREAMS: limits.streams,
            peer_settings.INITIAL_WINDOW_SIZE: limits.stream_window,
            peer_settings.MAX_FRAME_SIZE: LONGEST_FRAME,
            peer_settings.MAX_HEADER_LIST_SIZE: MOST_LIST_BYTES,
        }
        self.outbox.frames.append(settings(announced))
        if limits.window > DEFAULT_WINDOW:
            self.outbox.frames.append(window_update(0, limits.window - DEFAULT_WINDOW))

    def respond(
        self, stream_id: int, head: bytes, content: Sequence[Buffer], size: int, trailers: bytes, now: float
    ) -> bool:
        """Send a whole response and end the stream. False if some of its data must wait; OutputSent comes then."""
        try:
            stream = self.streams[stream_id]
        except KeyError:
            return False
        self._timers.answered_at = self._now = now
        self._budgets.answered += 1 + size // DEFAULT_FRAME
        if not self.outbox.respond(stream, head, content, size, trailers, now):
            return False
        if stream.state is _HALF_CLOSED and not self._draining:  # the usual case of `_finish`
            del self.streams[stream_id]
            if not self.streams:
                self._timers.idle_since = now
        else:
            self._finish(stream)
        return True

    def send_head(self, stream_id: int, block: bytes, now: float) -> None:
        """Send the header block of a response."""
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._timers.answered_at = now
            self.outbox.send_head(stream, block)

    def send_data(self, stream_id: int, content: Sequence[Buffer], now: float) -> bool:
        """Send data of a response. False if some of it must wait; OutputSent comes then."""
        stream = self.streams.get(stream_id)
        if stream is None:
            return False
        self._timers.answered_at = now
        self._budgets.answered += 1 + sum(map(len, content)) // DEFAULT_FRAME
        return self.outbox.send_data(stream, content, now)

    def send_trailers(self, stream_id: int, block: bytes, now: float) -> bool:
        """End a response with a trailer section, after its data. False if that must wait."""
        stream = self.streams.get(stream_id)
        if stream is None:
            return False
        self._timers.answered_at = now
        self._now = now
        self._budgets.answered += 1
        if not self.outbox.send_trailers(stream, block):
            return False
        self._finish(stream)
        return True

    def is_open(self, stream_id: int) -> bool:
        """Whether the client may still send on a stream."""
        stream = self.streams.get(stream_id)
        return stream is not None and stream.state is State.OPEN

    def discard(self, stream_id: int) -> None:
        """Drop the data of a stream that is queued."""
        self.outbox.forget(self.streams[stream_id])

    def reset(self, stream_id: int, code: ErrorCode, now: float) -> None:
        """End a stream at once, without what is queued."""
        self._now = now
        self.outbox.frames.append(rst_stream(stream_id, code))
        self._close(self.streams[stream_id], by_us=True)

    def pause(self, stream_id: int) -> None:
        """Grant no more of the stream's window."""
        self.streams[stream_id].paused = True

    def resume(self, stream_id: int) -> None:
        """Grant the stream's window again."""
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.paused = False
            if stream.state is State.OPEN:
                self._grant(stream)

    def expect(self, stream_id: int, size: int, are_last: bool) -> None:
        """Widen the window of a stream at once for `size` bytes that are going to be taken anyway.

        Behind them the client may send the usual window, so that the next message need not wait; nothing while the
        stream is paused. If they are the last that may come, no more is granted while they come without padding.
        """
        stream = self.streams[stream_id]
        if size > stream.receive_window and stream.state is State.OPEN:
            ahead = 0 if stream.paused else self._limits.stream_window
            missing = min(size + ahead, MAX_WINDOW) - stream.receive_window
            self.outbox.frames.append(window_update(stream_id, missing))
            stream.receive_window += missing
            stream.unread -= missing
        stream.suffices = are_last and stream.receive_window - size >= _REFUSED_BYTES

    def hold(self) -> None:
        """The transport has more than it can send: data waits in the queues of the streams."""
        self.outbox.held = True

    def release(self, now: float) -> list[Event]:
        """The transport can send again."""
        self.outbox.held = False
        self._now = now
        events: list[Event] = []
        self._pump(events)
        return events

    @property
    def greeted(self) -> bool:
        """Whether the preface and the first settings of the client have come."""
        return self._timers.greeted

    # The end

    def drain(self, now: float) -> None:
        """Accept no new streams, and end after the last one: GOAWAY for all, a ping, then GOAWAY with the real number.

        A stream that the client opens before it knows is served.
        """
        self._now = now
        if self._drain_at is None and not self.ended:
            self._drain_at = now + _DRAIN_SECONDS
            self.outbox.frames.append(goaway(MAX_WINDOW, ErrorCode.NO_ERROR) + frame(PING, 0, 0, _DRAIN_PING))

    def end(self, now: float, code: ErrorCode = ErrorCode.NO_ERROR, reason: str = "") -> list[Event]:
        """End the connection, whatever is in flight."""
        events: list[Event] = []
        self._now = now
        if not self.ended:
            self._fail(Http2Error(code, reason), events)
        return events

    def next_timer(self) -> float:
        """When `tick` must be called; the time of a stall is checked at any `tick`."""
        if self._drain_at is None or self._draining:
            return self._timers.next()
        return min(self._timers.next(), self._drain_at)

    def tick(self, now: float) -> list[Event]:
        """Act on the timers that are due."""
        events: list[Event] = []
        if self.ended:
            return events
        self._now = now
        if self._drain_at is not None and not self._draining and now >= self._drain_at:
            self._announce_last(events)
        stall = self._limits.timeouts.stall
        has_turns = now - self.outbox.moved_at < stall  # streams that have a window may wait long for theirs
        for stream in tuple(self.outbox.waiting.values()):
            if now - stream.stalled_since >= stall and not (has_turns and stream.window > 0):
                self.reset(stream.id, ErrorCode.CANCEL, now)
                events.append(StreamEnded(stream.id, ErrorCode.CANCEL))
        due = self._timers.due(now)
        if due is not None:
            action, code, reason = due
            if action is Action.PING:
                self.outbox.frames.append(frame(PING, 0, 0, _PING))
            elif action is Action.END:
                self._fail(Http2Error(code, reason), events)
            elif self.streams:
                self._timers.drained_at = now
                self.drain(now)
            else:
                self._announce_last(events)
        self._end_if_drained(events)
        return events

    def _ping_acknowledged(self, payload: bytes, events: list[Event]) -> None:
        if payload == _DRAIN_PING and self._drain_at is not None and not self._draining:
            self._announce_last(events)

    def _announce_last(self, events: list[Event]) -> None:
        self._draining = True
        self._last_allowed = self._highest
        self.outbox.frames.append(goaway(self._highest, ErrorCode.NO_ERROR))
        self._end_if_drained(events)

    def _end_if_drained(self, events: list[Event]) -> None:
        if self._draining and not self.streams and not self.ended:
            self._end(ErrorCode.NO_ERROR, "", events)

    def _fail(self, failure: Http2Error, events: list[Event]) -> None:
        self.outbox.frames.append(goaway(self._highest, failure.code, failure.reason))
        self._end(failure.code, failure.reason, events)

    def _refuse_http1(self, events: list[Event]) -> None:
        self.outbox.frames[:] = [_HTTP1_HEAD % len(_HTTP1_TEXT) + _HTTP1_TEXT]
        self._end(ErrorCode.HTTP_1_1_REQUIRED, "HTTP/1", events)

    def _end(self, code: ErrorCode, reason: str, events: list[Event]) -> None:
        self.ended = True
        for stream in self.streams.values():
            self.outbox.forget(stream)
        self.streams.clear()
        events.append(ConnectionEnded(code, reason))

    # Streams

    def _fail_stream(self, failure: Http2StreamError, events: list[Event]) -> None:
        """Reset a stream because of what the client did. Raises Http2Error when that happens too often."""
        stream = self.streams.get(failure.stream_id)
        self._send_control(rst_stream(failure.stream_id, failure.code))
        if stream is None:
            self._remember_reset(failure.stream_id)
        else:
            self._close(stream, by_us=True)
            events.append(StreamEnded(failure.stream_id, failure.code))
        self._budgets.spend(OUR_RESETS, self._now)
        self._end_if_drained(events)

    def _finish(self, stream: Stream) -> None:
        """The response is complete: a request that is not need not be completed (RFC 9113, section 8.1)."""
        if stream.state is State.OPEN:
            self.outbox.frames.append(rst_stream(stream.id, ErrorCode.NO_ERROR))
        self._close(stream, by_us=stream.state is State.OPEN)
        if self._draining and not self.streams:
            self.ended = True

    def _close(self, stream: Stream, by_us: bool = False) -> None:
        del self.streams[stream.id]
        if stream.queue is not None:
            self.outbox.forget(stream)
        if by_us:
            self._remember_reset(stream.id)
        if not self.streams:
            self._timers.idle_since = self._now

    def _remember_reset(self, stream_id: int) -> None:
        if len(self._reset_ids) >= _REMEMBERED:
            del self._reset_ids[next(iter(self._reset_ids))]
        self._reset_ids[stream_id] = None

    def _grant(self, stream: Stream) -> None:
        """Widen the window of a stream by what has been read, in large steps."""
        if stream.unread * 2 >= self._limits.stream_window:
            self.outbox.frames.append(window_update(stream.id, stream.unread))
            stream.receive_window += stream.unread
            stream.unread = 0

    def _pump(self, events: list[Event]) -> None:
        """Send what the windows have room for."""
        frames = len(self.outbox.frames)
        emptied = self.outbox.pump(self._now)
        if len(self.outbox.frames) > frames:
            self._timers.answered_at = self._now
        for stream in emptied:
            if stream.sent_all:
                self._finish(stream)
            events.append(OutputSent(stream.id))
        if events:
            self._end_if_drained(events)

    def _send_control(self, control: bytes) -> None:
        """Send a frame that the client has provoked. Raises Http2Error when it does not read them."""
        frames = self.outbox.frames
        frames.append(control)
        if self.outbox.held and len(frames) > MOST_UNREAD_FRAMES:
            frames.clear()
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "the client does not read")

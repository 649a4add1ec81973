"""HTTP/2 connection of a server, as a pure state machine: bytes and the time in, events and frames out."""

from collections.abc import Iterable
from typing import Any

from naiad_grpc.http2 import peer_settings
from naiad_grpc.http2.budgets import UNKNOWN
from naiad_grpc.http2.endpoint import Endpoint, Limits
from naiad_grpc.http2.events import (
    DataReceived,
    Event,
    RequestReceived,
    StreamEnded,
)
from naiad_grpc.http2.fields import MalformedFieldsError
from naiad_grpc.http2.frames import (
    ACK,
    DATA,
    END_STREAM,
    GOAWAY,
    HEAD,
    HEAD_SIZE,
    HEADERS,
    MAX_WINDOW,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ErrorCode,
    Http2Error,
    Http2StreamError,
    frame,
    window_update,
)
from naiad_grpc.http2.header_blocks import BlockReader, HeadCache
from naiad_grpc.http2.reader import (
    INCREMENT,
    VIEWED_BYTES,
    WINDOW_UPDATE_WORD,
    Frame,
    FrameReader,
    Http1RequestError,
    depends_on,
    is_self_dependent,
    whole_request,
)
from naiad_grpc.http2.states import State, judge
from naiad_grpc.http2.streams import Stream

_OPEN, _HALF_CLOSED = State.OPEN, State.HALF_CLOSED
_COUNTED_TOGETHER = 64
"""WINDOW_UPDATE frames are counted in this number, 0.3 % of their budget: each call of a client has two."""


class Connection(Endpoint):
    """One connection of a client. Not for several threads.

    `receive` takes bytes and returns events; the methods of Endpoint act on streams. `cache` has the interpreter of
    header fields, whose results are the heads of RequestReceived: they need an attribute `content_length`, -1 without.
    `reader` says where a long frame ends.
    """

    def __init__(self, cache: HeadCache[Any], limits: Limits, now: float) -> None:
        super().__init__(limits, now)
        self.reader = FrameReader()
        self._blocks = BlockReader(cache)
        self._receive_window = limits.window
        self._ungranted = 0
        self._updates = 0  # which the budget does not know yet

    def receive(self, data: bytes | memoryview, now: float) -> list[Event]:
        """The events of these bytes of the client; a view in them is valid until the next call.

        Data that is a view itself has nothing but a part of a long frame, as `reader` says.
        """
        events: list[Event] = []
        if self.ended:
            return events
        self._now = self._timers.heard_at = now
        reader, offset = self.reader, 0
        try:
            if isinstance(data, memoryview):
                self._receive_frames(reader.placed(data), events)
                return events
            if reader.greeted and not (reader.rest or reader.missing or reader.in_block):
                offset = self._receive_whole_requests(data, events)
            if offset < len(data):
                self._receive_frames(reader.frames(data, offset), events)
        except Http2Error as failure:
            self._fail(failure, events)
        except Http1RequestError:
            self._refuse_http1(events)
        return events

    def _receive_frames(self, frames: Iterable[Frame], events: list[Event]) -> None:
        """Take one frame after the other. Raises Http2Error or Http1RequestError."""
        reader, timers, widened = self.reader, self._timers, False
        for kind, flags, stream_id, payload, length in frames:
            try:
                if kind == DATA:
                    self._receive_data(flags, stream_id, payload, length, events)
                elif kind == HEADERS:
                    self._receive_headers(flags, stream_id, bytes(payload), events)
                elif kind == WINDOW_UPDATE:
                    widened = True
                    self._receive_window_update(stream_id, int.from_bytes(payload, "big") & MAX_WINDOW)
                else:
                    self._receive_other(kind, flags, stream_id, bytes(payload), events)
            except Http2StreamError as failure:
                self._fail_stream(failure, events)
            if self.ended:  # what follows is not read, whether it came with this frame or later
                break
        if widened and self.outbox.waiting:  # once for all frames: it looks at each stream that waits
            self._pump(events)
        if not timers.greeted:
            timers.greeted = reader.greeted
        if reader.in_block:
            timers.block_since = self._now if timers.block_since is None else timers.block_since
        else:
            timers.block_since = None

    def _receive_whole_requests(self, data: bytes, events: list[Event]) -> int:
        """Take each request of HEADERS that are known and DATA that end its stream in one step.

        The step does what the methods below do with the frames one by one. Whatever may need a decision is for them:
        other flags, streams, sizes or content-lengths. WINDOW_UPDATE is taken too where clients of gRPC send it: of the
        stream before its DATA, and of the connection between requests; all of them are counted at the end. Returns the
        offset of the first frame that is not taken.
        """
        known, streams, limits, outbox = self._blocks.known, self.streams, self._limits, self.outbox
        unpack, end = HEAD.unpack_from, len(data)
        offset, last, updates = 0, end - HEAD_SIZE, 0
        while offset <= last:
            word, flags, stream_id = unpack(data, offset)
            start = offset + HEAD_SIZE
            stop = start + (word >> 8)
            if word & 0xFF == HEADERS:
                whole = whole_request(data, known, flags, stream_id, start, stop)
                if whole is None:
                    break
                head, increment, start, stop = whole
                length, window = stop - start, outbox.initial_window + increment
                if (
                    stream_id <= self._highest
                    or length > limits.stream_window
                    or length > self._receive_window
                    or window > MAX_WINDOW
                    or head.content_length >= 0
                    or stream_id > self._last_allowed
                    or len(streams) >= limits.streams
                ):
                    break
                updates += increment > 0
                self._highest = stream_id
                self._receive_window -= length
                self._ungranted += length
                if self._ungranted * 2 >= limits.window:
                    self._grant_connection()
                streams[stream_id] = Stream(stream_id, _HALF_CLOSED, window, limits.stream_window - length, -1)
                content = data[start:stop] if length < VIEWED_BYTES else memoryview(data)[start:stop]
                events.append(RequestReceived(stream_id, head, True, content))
            elif word == WINDOW_UPDATE_WORD and not (stream_id or stop > end or outbox.waiting):
                increment = INCREMENT.unpack_from(data, start)[0] & MAX_WINDOW
                if not increment or outbox.window + increment > MAX_WINDOW:
                    break
                outbox.window += increment
                updates += 1
            else:
                break
            offset = stop
        if events:
            self._timers.idle_since = None
        self._updates += updates
        if self._updates >= _COUNTED_TOGETHER:
            self._count_updates()
        return offset

    def _count_updates(self) -> None:
        """Tell the budget of WINDOW_UPDATE frames, but for those that do not make a whole number of counts."""
        counted = self._updates - self._updates % _COUNTED_TOGETHER
        self._updates -= counted
        self._budgets.spend(WINDOW_UPDATE, self._now, counted)

    def _grant_connection(self) -> None:
        """Widen the window of the connection by what has come, in large steps."""
        self.outbox.frames.append(window_update(0, self._ungranted))
        self._receive_window += self._ungranted
        self._ungranted = 0

    def _receive_data(
        self, flags: int, stream_id: int, content: bytes | memoryview, length: int, events: list[Event]
    ) -> None:
        stream = self.streams.get(stream_id)
        self._receive_window -= length
        if self._receive_window < 0:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "more data than the window of the connection")
        self._ungranted += length
        if self._ungranted * 2 >= self._limits.window:
            self._grant_connection()
        if stream is None or stream.state is not _OPEN:
            judge(DATA, stream_id, self._state_of(stream_id))
            return
        if not (content or flags):
            self._budgets.spend(DATA, self._now)
        stream.receive_window -= length
        if stream.receive_window < 0:
            raise Http2StreamError(stream_id, ErrorCode.FLOW_CONTROL_ERROR, "more data than the window of the stream")
        if stream.expected >= 0:
            stream.expected -= len(content)
            if stream.expected < 0 or (flags and stream.expected):
                raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, "content-length is not that of the data")
        if flags:
            stream.state = _HALF_CLOSED
        else:
            stream.unread += length
            if length > len(content):  # padding: the window may not suffice
                stream.suffices = False
            if not (stream.paused or stream.suffices):
                self._grant(stream)
        events.append(DataReceived(stream_id, content, flags != 0))

    def _receive_headers(self, flags: int, stream_id: int, block: bytes, events: list[Event]) -> None:
        if stream_id > self._highest and stream_id & 1 and flags <= END_STREAM:  # the usual case
            self._highest = stream_id
            try:
                self._begin(stream_id, self._blocks.read(block), flags != 0, events)
            except MalformedFieldsError as error:
                raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, str(error)) from error
            return
        state = self._state_of(stream_id)
        ended = flags & END_STREAM != 0
        if state is State.IDLE and stream_id & 1:
            self._highest = stream_id
        try:
            if state is State.IDLE and not is_self_dependent(flags):
                self._begin(stream_id, self._blocks.read(block), ended, events)
                return
            if state is State.OPEN:
                self._blocks.read_trailers(block)
            else:
                self._blocks.skip(block)
        except MalformedFieldsError as error:
            raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, str(error)) from error
        if is_self_dependent(flags):
            raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")
        if judge(HEADERS, stream_id, state):
            stream = self.streams[stream_id]
            if not ended or stream.expected > 0:
                raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, "trailers do not end the request")
            stream.state = State.HALF_CLOSED
            events.append(DataReceived(stream_id, b"", True))

    def _begin(self, stream_id: int, head: Any, ended: bool, events: list[Event]) -> None:
        limits = self._limits
        if not stream_id & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a client opened the stream {stream_id}")
        if len(self.streams) >= limits.streams or stream_id > self._last_allowed:
            raise Http2StreamError(stream_id, ErrorCode.REFUSED_STREAM, "too many streams")
        length: int = head.content_length
        if ended and length > 0:
            raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, "content-length without data")
        state = _HALF_CLOSED if ended else _OPEN
        window = self.outbox.initial_window
        self.streams[stream_id] = Stream(stream_id, state, window, limits.stream_window, length)
        self._timers.idle_since = None
        events.append(RequestReceived(stream_id, head, ended))

    def _receive_other(self, kind: int, flags: int, stream_id: int, payload: bytes, events: list[Event]) -> None:
        if kind == SETTINGS:
            self._receive_settings(flags, payload, events)
        elif kind == PING:
            self._receive_ping(flags, payload, events)
        elif kind == RST_STREAM:
            self._budgets.spend(RST_STREAM, self._now)
            if judge(RST_STREAM, stream_id, self._state_of(stream_id)):
                self._close(self.streams[stream_id])
                events.append(StreamEnded(stream_id, int.from_bytes(payload, "big")))
                self._end_if_drained(events)
        elif kind == PRIORITY:
            self._budgets.spend(PRIORITY, self._now)
            if len(payload) != 5:
                raise Http2StreamError(stream_id, ErrorCode.FRAME_SIZE_ERROR, "PRIORITY has not five bytes")
            if depends_on(payload) == stream_id:
                raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")
        elif kind == GOAWAY:
            self._budgets.spend(UNKNOWN, self._now)
            self._draining = True
            self._end_if_drained(events)
        elif kind == PUSH_PROMISE:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a client sent PUSH_PROMISE")
        else:
            self._budgets.spend(UNKNOWN, self._now)

    def _receive_settings(self, acknowledges: int, payload: bytes, events: list[Event]) -> None:
        if acknowledges:
            self._budgets.spend(UNKNOWN, self._now)
            if payload:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "an acknowledgement of settings has a payload")
            self._blocks.settings_acknowledged()
            return
        self._budgets.spend(SETTINGS, self._now)
        outbox = self.outbox
        for number, value in peer_settings.read_settings(payload):
            if number == peer_settings.INITIAL_WINDOW_SIZE:
                outbox.change_initial_window(value, tuple(self.streams.values()))
            elif number == peer_settings.MAX_FRAME_SIZE:
                outbox.max_frame = value
            elif number == peer_settings.HEADER_TABLE_SIZE and value < peer_settings.DEFAULT_HEADER_TABLE:
                outbox.resize_table()
        self._send_control(frame(SETTINGS, ACK, 0))
        self._pump(events)

    def _receive_ping(self, acknowledges: int, payload: bytes, events: list[Event]) -> None:
        if acknowledges:
            self._budgets.spend(UNKNOWN, self._now)
            self._ping_acknowledged(payload, events)
            return
        self._budgets.spend(PING, self._now)
        self._send_control(frame(PING, ACK, 0, payload))
        self._timers.ping_received(self._now, bool(self.streams))

    def _receive_window_update(self, stream_id: int, increment: int) -> None:
        self._updates += 1
        if self._updates >= _COUNTED_TOGETHER:
            self._count_updates()
        if not stream_id:
            if not increment:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE with an increment of 0")
            self.outbox.widen(increment)
        elif judge(WINDOW_UPDATE, stream_id, self._state_of(stream_id)):
            if not increment:
                raise Http2StreamError(stream_id, ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE with an increment of 0")
            self.outbox.widen_stream(self.streams[stream_id], increment)

    def _state_of(self, stream_id: int) -> State:
        stream = self.streams.get(stream_id)
        if stream is not None:
            return stream.state
        if stream_id > self._highest or not stream_id & 1:
            return State.IDLE
        return State.RESET if stream_id in self._reset_ids else State.CLOSED

"""Reader of frames: splits the bytes of a client into frames, and puts header blocks together (RFC 9113, 4)."""

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import TypeVar

from naiad_grpc.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    DEFAULT_FRAME,
    END_HEADERS,
    END_STREAM,
    HEAD,
    HEAD_SIZE,
    HEADERS,
    LONGEST_FRAME,
    MAX_WINDOW,
    PADDED,
    PREFACE,
    PRIORITY_FLAG,
    SETTINGS,
    WINDOW_UPDATE,
    ErrorCode,
    Http2Error,
    check_frame,
)
from naiad_grpc.http2.header_blocks import MOST_BLOCK_BYTES, MOST_CONTINUATIONS

VIEWED_BYTES = 4096
"""Data from this size is passed on as a view, which saves a copy of it."""

_FORMS = END_HEADERS | PADDED | PRIORITY_FLAG
"""The flags of HEADERS that say what is in them; END_HEADERS alone is a whole block and nothing else."""

_SELF_DEPENDENT = 0x100
"""Beside the flags of HEADERS: the stream depends on itself, which is an error of the stream."""

WINDOW_UPDATE_WORD = 4 << 8 | WINDOW_UPDATE
"""Length and kind of a WINDOW_UPDATE frame, as HEAD has them."""
INCREMENT = Struct(">I")
"""The payload of a WINDOW_UPDATE frame."""
_INCREMENT_AND_HEAD = Struct(">IIBI")
"""The increment of a WINDOW_UPDATE frame, and the head of the frame behind it."""
_WINDOW_UPDATE_SIZE = HEAD_SIZE + INCREMENT.size

T = TypeVar("T")

Frame = tuple[int, int, int, bytes | memoryview, int]
"""A frame: kind, flags, stream, payload, and the payload's length with padding. A long one of DATA comes in parts."""


class Http1RequestError(Exception):
    """The client speaks HTTP/1."""


class FrameReader:
    """Reads frames; the flags of a frame that it yields tell the end of the stream (or ACK), and nothing else.

    Padding and priorities are gone, and HEADERS have the whole block, whatever CONTINUATION frames it came in. DATA
    longer than 16 KiB are passed on as they come, with the flags at their end.

    `greeted` says that the preface and the first SETTINGS have come, `in_block` that a header block has begun and not
    ended. `rest` is the beginning of a frame that has not come whole. `missing` is how many bytes a long one lacks.
    `long_stream` is its stream; it is 0 where no long frame is incomplete, and for one with padding.
    """

    __slots__ = (
        "_block",
        "_block_flags",
        "_block_stream",
        "_continuations",
        "_long_flags",
        "_owner",
        "_padding",
        "_preface_seen",
        "_uncounted",
        "greeted",
        "in_block",
        "long_stream",
        "missing",
        "rest",
    )

    def __init__(self) -> None:
        self.greeted = self.in_block = False
        self._preface_seen = False
        self.rest = b""
        self._block: bytearray | None = None
        self._block_stream = self._block_flags = self._continuations = 0
        self.missing = self.long_stream = self._long_flags = 0
        self._owner = self._padding = self._uncounted = 0  # of a long frame

    def frames(self, data: bytes, offset: int = 0) -> Iterator[Frame]:
        """The frames in these bytes. A view is valid until the next frame. Raises Http2Error, Http1RequestError.

        With an `offset`, which a caller may have only where a frame begins, the bytes before it have been read.
        """
        return self._continued(data) if self.rest or not self._preface_seen else self._whole_frames(data, offset)

    def placed(self, content: memoryview) -> tuple[Frame]:
        """The part of a long frame that was received alone: at most what is `missing`."""
        return (self._part(content, 0)[0],)

    def _continued(self, data: bytes) -> Iterator[Frame]:
        """The frames in bytes that are not the beginning of a frame."""
        offset = 0
        if not self._preface_seen:
            data, self.rest = self.rest + data, b""
            data = self._after_preface(data)
        elif self.rest:
            frame, offset = self._complete(data)
            yield from self._whole_frames(frame)
        if offset < len(data):
            yield from self._whole_frames(data, offset)

    def _complete(self, data: bytes) -> tuple[bytes, int]:
        """The frame whose beginning has come before, perhaps incomplete still, and how many of these bytes are in it.

        Of a long frame only the first byte of its payload: that may be the length of its padding.
        """
        rest, self.rest = self.rest, b""
        taken = max(0, HEAD_SIZE - len(rest))
        rest += data[:taken]
        if len(rest) >= HEAD_SIZE:
            length = int.from_bytes(rest[:3], "big")
            missing = HEAD_SIZE + (1 if length > MOST_BLOCK_BYTES else length) - len(rest)
            rest += data[taken : taken + missing]
            taken += missing
        return rest, min(taken, len(data))

    def _after_preface(self, data: bytes) -> bytes:
        """The bytes after the preface; b"" while it is incomplete."""
        if data.startswith(PREFACE):
            self._preface_seen = True
            return data[len(PREFACE) :]
        if PREFACE.startswith(data):
            self.rest = data
            return b""
        if data[:1].isalpha() and not data.startswith(b"PRI "):
            raise Http1RequestError
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the connection preface is not that of HTTP/2")

    def _whole_frames(self, data: bytes, offset: int = 0) -> Iterator[Frame]:
        """The whole frames; what follows them is kept."""
        end = len(data)
        if self.missing:
            part, offset = self._part(data, offset)
            yield part
        unpack = HEAD.unpack_from
        while end - offset >= HEAD_SIZE:
            word, flags, stream_id = unpack(data, offset)
            length, kind = word >> 8, word & 0xFF
            start = offset + HEAD_SIZE
            stop = start + length
            stream_id &= MAX_WINDOW
            if length > DEFAULT_FRAME and _is_long(kind, length):
                if start == end:
                    break
                offset = self._begin_long(flags, stream_id, length, data, start)
                part, offset = self._part(data, offset)
                yield part
                continue
            if stop > end:
                break
            offset = stop
            if kind == DATA and length >= VIEWED_BYTES:
                payload: bytes | memoryview = memoryview(data)[start:stop]
            else:
                payload = data[start:stop]
            is_plain = self._block is None and self.greeted and stream_id  # what follows is most frames of a call
            if is_plain and kind == DATA and not flags & PADDED:
                yield DATA, flags & END_STREAM, stream_id, payload, length
            elif is_plain and kind == HEADERS and flags & _FORMS == END_HEADERS:
                yield HEADERS, flags & END_STREAM, stream_id, payload, 0
            else:
                frame = self._checked(kind, flags, stream_id, payload, length)
                if frame is not None:
                    yield frame
        if offset < end:
            self.rest = data[offset:]

    def _begin_long(self, flags: int, stream_id: int, length: int, data: bytes, start: int) -> int:
        """Begin DATA that are passed on in parts; the offset of their content."""
        self._check(DATA, flags, stream_id, length)
        self._long_flags, self._owner = flags & END_STREAM, stream_id
        self._padding = self._uncounted = 0
        if flags & PADDED:
            self._padding, self._uncounted = data[start], 1
        self.long_stream = 0 if self._padding else stream_id
        self.missing = length - self._uncounted
        return start + self._uncounted

    def _part(self, data: bytes | memoryview, offset: int) -> tuple[Frame, int]:
        """The part of long DATA at that offset, and the offset after it."""
        stop = min(len(data), offset + self.missing)
        self.missing -= stop - offset
        padding = max(0, self._padding - self.missing)  # which has come
        content = memoryview(data)[offset : max(offset, stop - padding)]
        length, self._uncounted = stop - offset + self._uncounted, 0
        flags = 0
        if not self.missing:
            flags, self.long_stream = self._long_flags, 0
        return (DATA, flags, self._owner, content, length), stop

    def _checked(self, kind: int, flags: int, stream_id: int, payload: bytes | memoryview, length: int) -> Frame | None:
        """The frame if it follows the rules; None for a part of a header block."""
        self._check(kind, flags, stream_id, length)
        if kind == CONTINUATION:
            return self._continue_block(flags, stream_id, payload)
        if kind in (DATA, HEADERS) and flags & PADDED:
            payload = _without_padding(payload)
        if kind == HEADERS:
            return self._begin_block(flags, stream_id, payload)
        return kind, flags & END_STREAM, stream_id, payload, length

    def _check(self, kind: int, flags: int, stream_id: int, length: int) -> None:
        """Check a frame against the rules. Raises Http2Error."""
        if self._block is not None and (kind != CONTINUATION or stream_id != self._block_stream):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a frame of kind {kind} within a header block")
        if not self.greeted:
            if kind != SETTINGS or flags & ACK:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
            self.greeted = True
        check_frame(kind, length, stream_id)

    def _begin_block(self, flags: int, stream_id: int, payload: bytes | memoryview) -> Frame | None:
        kept = flags & END_STREAM
        if flags & PRIORITY_FLAG:
            if len(payload) < 5:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "HEADERS end within their priority")
            if depends_on(payload) == stream_id:
                kept |= _SELF_DEPENDENT
            payload = payload[5:]
        if flags & END_HEADERS:
            return HEADERS, kept, stream_id, payload, 0
        self._block, self._block_stream, self._block_flags = bytearray(payload), stream_id, kept
        self._continuations = 0
        self.in_block = True
        return None

    def _continue_block(self, flags: int, stream_id: int, payload: bytes | memoryview) -> Frame | None:
        if self._block is None:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        self._block += payload
        self._continuations += 1
        if self._continuations > MOST_CONTINUATIONS or len(self._block) > MOST_BLOCK_BYTES:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "a header block is too long")
        if not flags & END_HEADERS:
            return None
        block, self._block = bytes(self._block), None
        self.in_block = False
        return HEADERS, self._block_flags, stream_id, block, 0


def whole_request(
    data: bytes, known: Mapping[bytes, T], flags: int, stream_id: int, start: int, stop: int
) -> tuple[T, int, int, int] | None:
    """A request of HEADERS whose block is known and DATA that end its stream, with nothing to decide in them.

    HEADERS have these flags, and their block is data[start:stop]. WINDOW_UPDATE of the stream may stand before DATA.
    Returns the head of the block, the increment of the window (0 for none), and the start and end of the data.
    """
    last = len(data) - HEAD_SIZE
    if flags != END_HEADERS or stop > last or not stream_id & 1:
        return None
    head = known.get(data[start:stop])
    increment = 0
    word, flags, owner = HEAD.unpack_from(data, stop)
    if word == WINDOW_UPDATE_WORD and owner == stream_id and stop + _WINDOW_UPDATE_SIZE <= last:
        increment, word, flags, owner = _INCREMENT_AND_HEAD.unpack_from(data, stop + HEAD_SIZE)
        increment &= MAX_WINDOW
        if not increment:
            return None
        stop += _WINDOW_UPDATE_SIZE
    start = stop + HEAD_SIZE
    stop = start + (word >> 8)
    if head is None or word & 0xFF != DATA or flags != END_STREAM or owner != stream_id or stop > len(data):
        return None
    return None if stop - start > DEFAULT_FRAME else (head, increment, start, stop)


def depends_on(payload: bytes | memoryview) -> int:
    """The stream that a priority names."""
    return int.from_bytes(payload[:4], "big") & MAX_WINDOW


def is_self_dependent(flags: int) -> bool:
    """Whether HEADERS with these flags name their own stream in their priority."""
    return flags & _SELF_DEPENDENT != 0


def _is_long(kind: int, length: int) -> bool:
    """Whether a frame of more than 16 KiB is passed on in parts. Raises Http2Error for one that is too long."""
    if length > LONGEST_FRAME:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
    if kind != DATA and length > MOST_BLOCK_BYTES:
        raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, f"a frame of kind {kind} with {length} bytes")
    return kind == DATA


def _without_padding(payload: bytes | memoryview) -> bytes | memoryview:
    if not payload or payload[0] >= len(payload):
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the padding is longer than the frame")
    return payload[1 : len(payload) - payload[0]]

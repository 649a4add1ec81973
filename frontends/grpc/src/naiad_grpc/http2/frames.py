"""Frames of HTTP/2 (RFC 9113, sections 4 and 6): their kinds, flags, rules, and how they are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from struct import Struct
from types import MappingProxyType

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

HEAD = Struct(">IBI")
"""The head of a frame: 24 bits of length and 8 of kind, the flags, and the stream."""
HEAD_SIZE = 9

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY_FLAG = 0x20

MAX_WINDOW = 2**31 - 1
DEFAULT_WINDOW = 65535
DEFAULT_FRAME = 16384
LONGEST_FRAME = 1 << 20
"""The longest payload of a frame that the server announces. Clients that write longer frames save time on both ends."""

_ERROR = Struct(">I")
_TWO = Struct(">II")


class ErrorCode(IntEnum):
    """The error codes of RST_STREAM and GOAWAY (RFC 9113, section 7)."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class Http2Error(Exception):
    """A connection error (RFC 9113, section 5.4.1): GOAWAY with this code, then the end of the connection."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Http2StreamError(Exception):
    """A stream error (RFC 9113, section 5.4.2): RST_STREAM with this code; other streams continue."""

    def __init__(self, stream_id: int, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.stream_id = stream_id
        self.code = code
        self.reason = reason


class Scope(Enum):
    """Where a kind of frame belongs: to the connection (stream 0), to a stream, or to either."""

    CONNECTION = 0
    STREAM = 1
    EITHER = 2


@dataclass(frozen=True, slots=True)
class FrameRule:
    """The rule of a kind of frame: its scope and the length of its payload in bytes."""

    scope: Scope
    least: int = 0
    most: int = MAX_WINDOW
    multiple: int = 1


RULES: Mapping[int, FrameRule] = MappingProxyType(
    {
        DATA: FrameRule(Scope.STREAM),
        HEADERS: FrameRule(Scope.STREAM),
        PRIORITY: FrameRule(Scope.STREAM),
        RST_STREAM: FrameRule(Scope.STREAM, 4, 4),
        SETTINGS: FrameRule(Scope.CONNECTION, 0, multiple=6),
        PUSH_PROMISE: FrameRule(Scope.STREAM),
        PING: FrameRule(Scope.CONNECTION, 8, 8),
        GOAWAY: FrameRule(Scope.CONNECTION, 8),
        WINDOW_UPDATE: FrameRule(Scope.EITHER, 4, 4),
        CONTINUATION: FrameRule(Scope.STREAM),
    }
)
"""The rule of each kind of frame. Frames of other kinds are ignored."""


def check_frame(kind: int, length: int, stream_id: int) -> None:
    """Check a frame against the rule of its kind. Raises Http2Error.

    The length of PRIORITY is not checked: a wrong one is an error of its stream alone.
    """
    rule = RULES.get(kind)
    if rule is None:
        return
    if rule.scope is not Scope.EITHER and (rule.scope is Scope.STREAM) != (stream_id != 0):
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a frame of kind {kind} on stream {stream_id}")
    if not rule.least <= length <= rule.most or length % rule.multiple:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a frame of kind {kind} with {length} bytes")


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return HEAD.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    """A RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream_id, _ERROR.pack(code))


def window_update(stream_id: int, increment: int) -> bytes:
    """A WINDOW_UPDATE frame; stream 0 is the connection."""
    return frame(WINDOW_UPDATE, 0, stream_id, _ERROR.pack(increment))


def goaway(last_stream_id: int, code: ErrorCode, debug: str = "") -> bytes:
    """A GOAWAY frame."""
    return frame(GOAWAY, 0, 0, _TWO.pack(last_stream_id, code) + debug.encode())


def settings(values: Mapping[int, int]) -> bytes:
    """A SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(SETTING.pack(number, value) for number, value in values.items()))


SETTING = Struct(">HI")
"""One setting in the payload of a SETTINGS frame."""

"""Settings of the client (RFC 9113, section 6.5.2): a table of their limits, and their values."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from naiad_grpc.http2.frames import DEFAULT_FRAME, MAX_WINDOW, SETTING, ErrorCode, Http2Error

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)
DEFAULT_HEADER_TABLE = 4096
MOST_SETTINGS = 32
"""The most settings in one frame: each initial window changes all streams. Clients send ten at most."""
_MOST = 2**32 - 1

LIMITS: Mapping[int, tuple[int, int, ErrorCode]] = MappingProxyType(
    {
        HEADER_TABLE_SIZE: (0, _MOST, ErrorCode.PROTOCOL_ERROR),
        ENABLE_PUSH: (0, 1, ErrorCode.PROTOCOL_ERROR),
        MAX_CONCURRENT_STREAMS: (0, _MOST, ErrorCode.PROTOCOL_ERROR),
        INITIAL_WINDOW_SIZE: (0, MAX_WINDOW, ErrorCode.FLOW_CONTROL_ERROR),
        MAX_FRAME_SIZE: (DEFAULT_FRAME, 2**24 - 1, ErrorCode.PROTOCOL_ERROR),
        MAX_HEADER_LIST_SIZE: (0, _MOST, ErrorCode.PROTOCOL_ERROR),
    }
)
"""The least and the largest value of each setting, and the error of others. Unknown settings are ignored."""


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """The known settings in the payload of a SETTINGS frame, in order. Raises Http2Error."""
    if len(payload) > MOST_SETTINGS * SETTING.size:
        raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, f"more than {MOST_SETTINGS} settings in a frame")
    for number, value in SETTING.iter_unpack(payload):
        limits = LIMITS.get(number)
        if limits is None:
            continue
        least, most, code = limits
        if not least <= value <= most:
            raise Http2Error(code, f"setting {number} has the value {value}")
        yield number, value

"""State machine of a stream (RFC 9113, section 5.1) as a table: what a frame of the client does in each state."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from naiad_grpc.http2.frames import (
    DATA,
    HEADERS,
    RST_STREAM,
    WINDOW_UPDATE,
    ErrorCode,
    Http2Error,
    Http2StreamError,
)


class State(Enum):
    """The states of a stream, as the server sees them.

    There is no half-closed (local): the server resets a stream whose answer is complete before its request.
    """

    IDLE = "idle"
    OPEN = "open"
    HALF_CLOSED = "half-closed (remote)"
    RESET = "closed by our RST_STREAM"
    CLOSED = "closed"


class Verdict(Enum):
    """What becomes of a frame."""

    ACCEPT = 0
    IGNORE = 1
    STREAM_CLOSED = 2
    """A stream error STREAM_CLOSED."""
    CONNECTION_CLOSED = 3
    """A connection error STREAM_CLOSED."""
    VIOLATION = 4
    """A connection error PROTOCOL_ERROR."""


_A, _I, _S, _C, _V = Verdict

RECEIVED: Mapping[int, Mapping[State, Verdict]] = MappingProxyType(
    {
        kind: MappingProxyType(dict(zip(State, verdicts, strict=True)))
        for kind, verdicts in {
            # idle, open, half-closed, reset, closed
            HEADERS: (_A, _A, _S, _I, _C),
            DATA: (_V, _A, _S, _I, _C),
            RST_STREAM: (_V, _A, _A, _I, _I),
            WINDOW_UPDATE: (_V, _A, _A, _I, _I),
        }.items()
    }
)
"""The verdict on a frame, by its kind and the state of its stream."""


def judge(kind: int, stream_id: int, state: State) -> bool:
    """Whether to act on a frame (or to ignore it). Raises Http2Error or Http2StreamError by the table."""
    verdict = RECEIVED[kind][state]
    if verdict is Verdict.ACCEPT or verdict is Verdict.IGNORE:
        return verdict is Verdict.ACCEPT
    reason = f"a frame of kind {kind} on stream {stream_id}, which is {state.value}"
    if verdict is Verdict.STREAM_CLOSED:
        raise Http2StreamError(stream_id, ErrorCode.STREAM_CLOSED, reason)
    violation = verdict is Verdict.VIOLATION
    raise Http2Error(ErrorCode.PROTOCOL_ERROR if violation else ErrorCode.STREAM_CLOSED, reason)

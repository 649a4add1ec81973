"""Events of an HTTP/2 connection: what the bytes of a client mean to the server."""

from dataclasses import dataclass
from typing import Any

from naiad_grpc.http2.frames import ErrorCode


@dataclass(slots=True)
class RequestReceived:
    """A request begins. `head` is what the interpreter of header fields returned.

    If `ended`, the request has come whole, with `content` as its body; a memoryview is valid during the call alone.
    """

    stream_id: int
    head: Any
    ended: bool
    content: bytes | memoryview = b""


@dataclass(slots=True)
class DataReceived:
    """Bytes of a request's body, with `ended` its last ones. A memoryview is valid during the call alone."""

    stream_id: int
    content: bytes | memoryview
    ended: bool


@dataclass(slots=True)
class StreamEnded:
    """The stream ended early: the client or, for a violation of the protocol, this server has reset it."""

    stream_id: int
    code: ErrorCode | int


@dataclass(slots=True)
class OutputSent:
    """All queued data of a stream has been written into frames."""

    stream_id: int


@dataclass(slots=True)
class ConnectionEnded:
    """The connection must be closed once its output is sent; streams that are open have ended."""

    code: ErrorCode | int
    reason: str


Event = RequestReceived | DataReceived | StreamEnded | OutputSent | ConnectionEnded

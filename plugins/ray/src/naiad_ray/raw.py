"""Requests and answers as raw bytes, in which replicas, front desks and the control plane exchange them."""

from collections.abc import Iterable
from dataclasses import dataclass

Headers = tuple[tuple[bytes, bytes], ...]
OK = frozenset((0, 200))
"""The statuses of success: of gRPC and of HTTP."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole HTTP request: `path` is percent-encoded as the client sent it."""

    method: str
    path: bytes
    query: bytes
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class GrpcRequest:
    """A whole call of an RPC with one message: `path` is `/package.Service/Method`."""

    path: str
    message: bytes
    metadata: tuple[tuple[str, str | bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer: its HTTP status with headers and body, or its gRPC code with its text or message.

    `replica` is the replica that gave it, "" for a front desk.
    """

    status: int
    headers: Headers = ()
    body: bytes = b""
    text: str = ""
    replica: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether it is no error."""
        return self.status in OK


class Serialized:
    """The bytes of a message, in the form in which Ray Serve takes the answer of an RPC."""

    __slots__ = ("content",)

    def __init__(self, content: bytes) -> None:
        self.content = content

    def SerializeToString(self) -> bytes:  # noqa: N802 - as protobuf names it
        """The bytes."""
        return self.content


class RawCall:
    """A call for the RPCs of a frontend. Ray Serve passes no deadline on; it cancels the call when it has passed."""

    def __init__(self, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        self._metadata = tuple(metadata)

    def time_remaining(self) -> float | None:
        """None: the deadline is the proxy's."""
        return None

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """The caller's metadata."""
        return self._metadata

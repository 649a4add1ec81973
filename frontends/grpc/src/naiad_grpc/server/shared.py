"""What all connections of one listener share, and the connection as its calls see it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from naiad_grpc.admission import Admission
from naiad_grpc.http2.connection import Connection
from naiad_grpc.http2.endpoint import Limits
from naiad_grpc.http2.header_blocks import HeadCache
from naiad_grpc.server.methods import Method
from naiad_grpc.statuses import RpcError
from naiad_grpc.unfinished import CallInFlight
from naiad_grpc.wire.heads import CallHead
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.turns import TurnBudget

_SCRATCH_BYTES = 256 << 10
_SHORT_SCRATCH_BYTES = 16 << 10


class OpenConnection(Protocol):
    """A connection as its listener sees it."""

    @property
    def calls(self) -> Mapping[int, CallInFlight]:
        """Its calls that have not been answered, by their streams."""
        ...

    def drain(self) -> None:
        """The server stops: no new calls; streams get no more messages."""
        ...

    def close(self) -> None:
        """End the connection and all its calls."""
        ...

    def abort(self) -> None:
        """Close at once, whatever is unsent."""
        ...


@dataclass(slots=True, eq=False)
class ListenerContext:
    """The server as a connection sees it.

    `connections` are those that are open; `empty` is set when a connection was the last one. `sending` are those
    whose clients read too slowly, and those that close with unsent bytes; `sent` is set when there is none any more.
    `most` is the limit of a received message in bytes, `most_sent` that of an answer, `level` the level of zlib for
    answers (0: they are not compressed). Every connection receives in `scratch`, in `short_scratch` if it sends long
    frames: the event loop fills it, and the connection reads all of it at once.
    """

    loop: asyncio.AbstractEventLoop
    admission: Admission
    heads: HeadCache[CallHead[Method]]
    limits: Limits
    most: int
    most_sent: int
    level: int
    budget: ByteBudget
    most_connections: int
    connections: set[OpenConnection] = field(default_factory=set)
    empty: asyncio.Event = field(default_factory=asyncio.Event)
    sending: set[OpenConnection] = field(default_factory=set)
    sent: asyncio.Event = field(default_factory=asyncio.Event)
    turns: TurnBudget = field(default_factory=TurnBudget)
    scratch: memoryview = field(default_factory=lambda: memoryview(bytearray(_SCRATCH_BYTES)))
    short_scratch: memoryview = field(default_factory=lambda: memoryview(bytearray(_SHORT_SCRATCH_BYTES)))
    threads: CodecThreads = field(default_factory=lambda: CodecThreads("naiad-grpc-zlib"))

    def has_sent(self, connection: OpenConnection) -> None:
        """The client of a connection has caught up, or is gone."""
        self.sending.discard(connection)
        if not self.sending:
            self.sent.set()


class CallConnection(Protocol):
    """A connection as its calls see it; each call has a stream. `peer` is the client's address, "-" for none."""

    context: ListenerContext
    http2: Connection
    peer: str

    def take_turn(self, later: Callable[[], None]) -> bool:
        """Whether a request may start now; otherwise `later` is called in a later turn of the event loop."""
        ...

    def respond(self, stream_id: int, head: bytes, content: list[Buffer], size: int) -> None:
        """Send the whole answer of a call, `size` bytes of content."""
        ...

    def send_head(self, stream_id: int, block: bytes) -> None:
        """Send the head of an answer."""
        ...

    def send_message(self, stream_id: int, content: list[Buffer]) -> bool:
        """Send a message with its prefix. False if some of it must wait; the call's `sent` is called then."""
        ...

    def send_end(self, stream_id: int) -> None:
        """End an answer well."""
        ...

    def send_status(self, stream_id: int, error: RpcError, head_sent: bool = False) -> None:
        """End an answer with a status."""
        ...

    def forget(self, stream_id: int) -> None:
        """The call of that stream is over."""
        ...

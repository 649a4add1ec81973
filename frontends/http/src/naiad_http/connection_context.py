"""Connection context: the state that all connections of one listener share."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from naiad_http.heads import HeadReader
from naiad_http.incoming import Scratch
from naiad_http.infer import Inference
from naiad_http.limits import CanGiveWay, Limits
from naiad_http.statuses import Outcome
from naiad_kit.frontends.body_memory import Reserve, no_body_memory
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.turns import TurnBudget

if TYPE_CHECKING:
    from naiad.types import Request


class Call(Protocol):
    """A request on its way through the server."""

    def cancel(self) -> None:
        """Cancel the request: its caller no longer waits for the response."""
        ...

    def pause(self) -> None:
        """Hold the model back: the client reads slowly."""
        ...

    def resume(self) -> None:
        """Let the model continue: the client has caught up."""
        ...


class Submit(Protocol):
    """Submits a request; see `naiad.Server.submit`."""

    def __call__(self, request: "Request", deliver: Callable[[Outcome], None], streams: bool = False) -> Call:
        """The call of the request; `deliver` receives its outcome, with `streams` any number of outcomes."""
        ...


@dataclass(slots=True, eq=False)
class ConnectionContext:
    """The server as a connection sees it.

    `limit` is the maximum size of a body in bytes, `most_pipelined` that of the requests that wait behind one in
    flight; `budget` bounds the bytes of all connections, and `reserve` has memory for the bodies of some models. While
    `draining`, each connection is closed after its next response. `spares` are the connections above the limit, the
    oldest first. `date` is the current Date header line; `lost` is set when a connection is lost.
    Compressed bodies and responses have their own threads, so that they starve neither decoding nor model loads.
    """

    submit: Submit
    inference: Inference
    heads: HeadReader
    limit: int
    most_pipelined: int = 65536
    limits: Limits = field(default_factory=Limits)
    budget: ByteBudget = field(default_factory=partial(ByteBudget, sys.maxsize))
    reserve: Reserve = no_body_memory
    draining: bool = False
    scratch: Scratch = field(default_factory=Scratch)
    compression: CodecThreads = field(default_factory=partial(CodecThreads, "naiad-http-gzip"))
    turns: TurnBudget = field(default_factory=TurnBudget)
    spares: dict[CanGiveWay, None] = field(default_factory=dict)
    date: bytes = b""
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        """End the codec threads after their current work, without waiting for it."""
        self.inference.threads.close()
        self.compression.close()

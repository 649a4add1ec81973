"""What all connections of one listener share."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from naiad.byte_budget import ByteBudget
from naiad_http.heads import HeadReader
from naiad_http.incoming import Scratch
from naiad_http.infer import Inference
from naiad_http.limits import CanGiveWay, Limits
from naiad_http.statuses import Outcome
from naiad_http.turns import TurnBudget
from naiad_kit.frontends.codec_threads import CodecThreads

if TYPE_CHECKING:
    from naiad.types import Request


class Call(Protocol):
    """A request on its way through the server."""

    def cancel(self) -> None:
        """Say that nobody waits for the answer any more."""
        ...

    def pause(self) -> None:
        """Say that the client reads slowly: let the model wait."""
        ...

    def resume(self) -> None:
        """Say that the client has caught up."""
        ...


class Submit(Protocol):
    """How a request is sent on its way; see `naiad.Server.submit`."""

    def __call__(self, request: "Request", deliver: Callable[[Outcome], None], streams: bool = False) -> Call:
        """The call of the request; `deliver` gets its outcome, with `streams` any number of them."""
        ...


@dataclass(slots=True, eq=False)
class Site:
    """The server as a connection sees it.

    `limit` is the most bytes of a body, `most_pipelined` of requests that wait behind one in flight; `budget` bounds
    the bytes of all connections. `draining` says that the server is about to stop, so that each connection is closed
    behind its next answer. `spares` are the connections above the limit, the oldest first. `date` is the current Date
    header line; `on_lost` is called when a connection is lost.
    Compressed bodies and answers have threads of their own, so that they starve neither decoding nor model loads.
    """

    submit: Submit
    inference: Inference
    heads: HeadReader
    limit: int
    most_pipelined: int = 65536
    limits: Limits = field(default_factory=Limits)
    budget: ByteBudget = field(default_factory=partial(ByteBudget, sys.maxsize))
    draining: bool = False
    scratch: Scratch = field(default_factory=Scratch)
    compression: CodecThreads = field(default_factory=partial(CodecThreads, "naiad-http-gzip"))
    turns: TurnBudget = field(default_factory=TurnBudget)
    spares: dict[CanGiveWay, None] = field(default_factory=dict)
    date: bytes = b""
    on_lost: Callable[[], None] = lambda: None

    def close(self) -> None:
        """End the threads after what they do; nothing waits for that."""
        self.inference.threads.close()
        self.compression.close()

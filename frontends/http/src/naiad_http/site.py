"""What all connections of one listener share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from naiad_http.heads import HeadReader
from naiad_http.infer import Inference
from naiad_http.reader import Scratch
from naiad_http.statuses import Outcome

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

    `limit` is the most bytes of a body, `date` the current Date header line; `on_lost` is told of a lost connection.
    """

    submit: Submit
    inference: Inference
    heads: HeadReader
    limit: int
    scratch: Scratch = field(default_factory=Scratch)
    date: bytes = b""
    on_lost: Callable[[], None] = lambda: None

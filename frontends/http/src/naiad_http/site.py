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


@dataclass(slots=True, eq=False)
class Site:
    """The server as a connection sees it.

    `limit` is the most bytes of a body, `date` the current Date header line; `on_lost` is told of a lost connection.
    """

    submit: "Callable[[Request, Callable[[Outcome], None]], Call]"
    inference: Inference
    heads: HeadReader
    limit: int
    scratch: Scratch = field(default_factory=Scratch)
    date: bytes = b""
    on_lost: Callable[[], None] = lambda: None

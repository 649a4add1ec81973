"""Limits of connections: their number, and the timeouts of idling, heads and bodies."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from naiad_http.statuses import HttpError
from naiad_kit.frontends.connection_limits import BODY_SECONDS, HEAD_SECONDS, IDLE_SECONDS, open_file_limit

SPARE_CONNECTIONS = 16
"""The number of connections above the limit that serve only health checks and the model repository."""
SPARE_SECONDS = 2.0
"""The timeout of such a connection for idling and for sending its request."""

_CANDIDATES = 64
_IDLE_ENOUGH = 1.0
_LEAST_RESERVED_FILES = 96
_RESERVED_SHARE = 3 / 8


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum of `connections`, and the timeouts in seconds of idling, of a head and of a body.

    The timeout of a body grows by a second for each 4 KiB that have arrived.
    """

    connections: int = 1_000_000
    idle: float = IDLE_SECONDS
    head: float = HEAD_SECONDS
    body: float = BODY_SECONDS

    def spare(self) -> "Limits":
        """The limits of a connection above `connections`."""
        return replace(self, idle=SPARE_SECONDS, head=SPARE_SECONDS, body=SPARE_SECONDS)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Limits":
        """The limits that the options set."""
        return cls(
            connections=settings["http-max-connections"] or default_connections(),
            idle=settings["http-idle-seconds"],
            head=settings["http-head-seconds"],
            body=settings["http-body-seconds"],
        )


def default_connections() -> int:
    """The default limit: the limit of open files less those that are open and less three eighths, at least 96.

    A quarter is for the connections of gRPC, the rest for the metrics, for models that are loaded later, and for
    clients above the limit: the event loop accepts 16 in a turn and closes those that it refuses in the next. Without a
    free descriptor it would reset the connections of health checks too.
    """
    limit = open_file_limit()
    opened = 0
    with suppress(OSError):  # another system than Linux
        opened = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return max(1, limit - opened - max(_LEAST_RESERVED_FILES, int(limit * _RESERVED_SHARE)))


class CanGiveWay(Protocol):
    """A connection that may be closed in favour of another client."""

    @property
    def idle_since(self) -> float:
        """The loop's time since which it idles; infinity while it does not."""
        ...

    @property
    def in_use(self) -> bool:
        """Whether a request is in flight, or bytes of one wait to be read."""
        ...

    def give_way(self) -> None:
        """Close the connection."""
        ...


def make_room(connections: Iterable[CanGiveWay], now: float) -> bool:
    """Close the longest idle of some connections, if it idles for a second or more. Returns whether one was closed."""
    longest = min(islice(connections, _CANDIDATES), key=lambda each: each.idle_since)
    if longest.idle_since > now - _IDLE_ENOUGH:
        return False
    longest.give_way()
    return True


def too_many(limit: int) -> HttpError:
    """The error for a client above the limit of connections."""
    reason = f"there are {limit} connections, which is the limit; try again later, or raise --http-max-connections"
    return HttpError(503, reason, (("Retry-After", "1"),))

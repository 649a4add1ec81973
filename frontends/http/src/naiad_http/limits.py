"""Limits of connections: how many there may be, and how long each may idle, send a head and send a body."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from naiad_http.statuses import HttpError
from naiad_kit.frontends.open_files import open_file_limit

IDLE_SECONDS = 75.0
HEAD_SECONDS = 20.0
BODY_SECONDS = 30.0
SLOWEST_BYTES_PER_SECOND = 4096
"""A body gets a second more for so many bytes of it that have come: large uploads over slow lines go on."""
SPARE_CONNECTIONS = 16
"""So many connections above the limit are served health checks and the model repository, and nothing else."""
SPARE_SECONDS = 2.0
"""How long such a connection may idle or send its request."""

_LOOKED_AT = 64
_IDLE_ENOUGH = 1.0
_RESERVED_FILES = 48
_RESERVED_SHARE = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """`connections` at most; the seconds that one may idle, take for a head, and take for a body.

    A body gets a second more for each 4 KiB of it that have come.
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
    """As many connections as this process may open files, but for those that it has open and an eighth, at least 48.

    The rest are for the metrics, gRPC, and models that are loaded later.
    """
    limit = open_file_limit()
    opened = 0
    with suppress(OSError):  # another system than Linux
        opened = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return max(1, limit - opened - max(_RESERVED_FILES, limit // _RESERVED_SHARE))


class CanGiveWay(Protocol):
    """A connection that may be closed for another client."""

    @property
    def idle_since(self) -> float:
        """The loop's time from when it has nothing to do; infinity while it has."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a request is in flight."""
        ...

    def give_way(self) -> None:
        """Close it."""
        ...


def make_room(connections: Iterable[CanGiveWay], now: float) -> bool:
    """Close the connection that has idled for longest among some, if it has for a second; whether it has."""
    longest = min(islice(connections, _LOOKED_AT), key=lambda each: each.idle_since)
    if longest.idle_since > now - _IDLE_ENOUGH:
        return False
    longest.give_way()
    return True


def too_many(limit: int) -> HttpError:
    """The refusal of a client above the limit of connections."""
    reason = f"there are {limit} connections, which is the limit; try again later, or raise --http-max-connections"
    return HttpError(503, reason, (("Retry-After", "1"),))

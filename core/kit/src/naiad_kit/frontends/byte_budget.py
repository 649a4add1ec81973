"""The byte budget of a server: bounds the memory that bodies, messages, decoded tensors and answers hold together."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from naiad.errors import UnavailableError

UNCHARGED_BYTES = 65536
"""Payloads up to this size need no reservation: the limit of connections bounds them, and most requests stay free."""

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_RETRY_AFTER_SECONDS = 1.0


class ByteBudget:
    """Counts the bytes that are in flight, and refuses more than `limit`. Use it on the event loop only.

    A frontend reserves the size of a body or message while it takes it in, and releases the same number when the answer
    is written or the client is gone. All frontends of a server share `server.service(ByteBudget)`.
    """

    name: str = "bytes-in-flight"
    __slots__ = ("limit", "peak", "reserved")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reserved = 0
        self.peak = 0

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "ByteBudget":
        """The budget of a server with these options."""
        return cls(settings["max-bytes-in-flight"] or default_limit())

    def check(self, count: int) -> None:
        """Raise UnavailableError if `count` bytes could not be reserved now."""
        if self.reserved + count > self.limit:
            raise UnavailableError(
                f"{count} bytes more would pass the limit of {self.limit} bytes in flight, of which "
                f"{self.reserved} are taken; try again later, send less at once, or raise --max-bytes-in-flight",
                _RETRY_AFTER_SECONDS,
            )

    def reserve(self, count: int) -> None:
        """Reserve `count` bytes for a payload. Raises UnavailableError, and reserves nothing, above the limit."""
        self.check(count)
        self.add(count)

    def add(self, count: int) -> None:
        """Reserve `count` bytes for something that exists already, such as an answer, even above the limit."""
        self.reserved += count
        if self.reserved > self.peak:
            self.peak = self.reserved

    def release(self, count: int) -> None:
        """Give `count` reserved bytes back."""
        self.reserved -= count


def default_limit() -> int:
    """Half of the memory that this process may use: of the machine, its control group, or its address space."""
    return memory_limit() // 2


def memory_limit() -> int:
    """The bytes of memory that this process may use (cgroups(7), getrlimit(2)), at most those of the machine."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # no such version of control groups, or "max"
            limits.append(int(Path(path).read_text(encoding="ascii")))
    with suppress(ImportError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    return min(limits)

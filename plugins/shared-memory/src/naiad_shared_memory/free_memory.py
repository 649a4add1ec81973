"""Free memory: what the process can allocate within the limits of its cgroup and of the machine."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

Read = Callable[[str], str]
"""Gives a file's content, "" where there is none."""


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of control groups: how a process finds its own, where they are, and which files say what is free."""

    own: str
    root: str
    most: str
    used: str
    cached: str


_VERSIONS = (
    _Version(r"^0::(/.*)$", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    _Version(
        r"^\d+:(?:.*,)?memory(?:,.*)?:(/.*)$",
        "/sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def free_bytes(read: "Read | None" = None) -> int | None:
    """The least of what the machine and each control group of the process have left; None where neither says it.

    What files keep in memory for speed alone counts as free. Both versions of control groups are looked at
    (docs.kernel.org/admin-guide/cgroup-v2.html and cgroup-v1/memory.html).
    """
    read = read or _text
    return min((available for available in _readings(read) if available is not None), default=None)


def _readings(read: Read) -> Iterator[int | None]:
    available = _number(r"^MemAvailable: +(\d+) kB$", read("/proc/meminfo"))
    yield None if available is None else available * 1024
    groups = read("/proc/self/cgroup")
    for version in _VERSIONS:
        match = re.search(version.own, groups, re.MULTILINE)
        own = PurePosixPath(match[1] if match else "/")
        for each in (own, *own.parents):
            yield _left_of(f"{version.root}{each}".rstrip("/"), version, read)


def _left_of(group: str, version: _Version, read: Read) -> int | None:
    most = _number(r"^(\d+)$", read(f"{group}/{version.most}"))
    used = _number(r"^(\d+)$", read(f"{group}/{version.used}"))
    if most is None or used is None:
        return None
    cached = _number(rf"^{version.cached} (\d+)$", read(f"{group}/memory.stat")) or 0
    return max(0, most - max(0, used - cached))


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text, re.MULTILINE)
    return int(match[1]) if match else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""

"""Processor utilization and memory of the machine, read from Linux's /proc."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGESIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, slots=True)
class MachineReading:
    """One reading: memory in bytes, `utilization` 0 to 1 since the previous reading; None if unknown."""

    utilization: float | None = None
    total: int | None = None
    used: int | None = None
    resident: int | None = None


class Machine:
    """Reads /proc again when the last reading is `interval` seconds old; the first time at once."""

    def __init__(self, interval: float, read: "Callable[[str], str] | None" = None) -> None:
        self._interval = interval
        self._read = read or _text
        self._times = _cpu_times(self._read("/proc/stat"))
        self._utilization: float | None = None
        self._last = MachineReading()
        self._read_at: float | None = None

    def reading(self, now: float) -> MachineReading:
        """How the machine is, as of at most one interval ago."""
        if self._read_at is None or now - self._read_at >= self._interval:
            self._read_at = now
            self._last = self._new()
        return self._last

    def _new(self) -> MachineReading:
        memory = self._read("/proc/meminfo")
        total, available = _field(memory, "MemTotal"), _field(memory, "MemAvailable")
        pages = re.match(r"\d+ (\d+) ", self._read("/proc/self/statm"))
        return MachineReading(
            utilization=self._since_the_last(_cpu_times(self._read("/proc/stat"))),
            total=total,
            used=None if total is None or available is None else total - available,
            resident=int(pages[1]) * _PAGE if pages else None,
        )

    def _since_the_last(self, times: tuple[int, int] | None) -> float | None:
        """How busy the processors were between the last two readings that lie apart."""
        if times is None or self._times is None:
            return None
        idle, all_of_it = times[0] - self._times[0], times[1] - self._times[1]
        if all_of_it > 0:
            self._times = times
            self._utilization = min(1.0, max(0.0, 1 - idle / all_of_it))
        return self._utilization if self._utilization is not None else 0.0


def _cpu_times(stat: str) -> tuple[int, int] | None:
    """Idle time and all time of all processors since the start, in ticks; waiting for disks is idle time too."""
    match = re.match(r"cpu +((?:\d+ ?)+)", stat)
    if match is None:
        return None
    user, nice, system, idle, iowait, *rest = (int(number) for number in [*match[1].split(), *"00000"][:8])
    return idle + iowait, user + nice + system + idle + iowait + sum(rest)


def _field(meminfo: str, name: str) -> int | None:
    match = re.search(rf"^{name}: +(\d+) kB$", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _text(path: str) -> str:
    """A file's content, "" where there is none: only Linux has these."""
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""

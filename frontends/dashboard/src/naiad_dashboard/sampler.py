"""Sampler: reads the counters of all versions once a second while there are viewers, and keeps points of 5 minutes."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from naiad.reports import VersionReport
from naiad_dashboard.readings import Point, Reading, point

if TYPE_CHECKING:
    from naiad.server import ServerApi

SECONDS = 300
"""How far the history goes back, one point a second."""

_WINDOW = 10
"""Seconds that quantiles and batches are taken over, so that they do not jump with single requests."""

_STALE = 60.0
"""A reading that is older says nothing about the rate now."""

_TURN = 0.001

Key = tuple[str, int]
"""The name and version of a model."""


class Track:
    """The last readings of one version, and its points of five minutes."""

    __slots__ = ("points", "readings", "report")

    def __init__(self, report: VersionReport) -> None:
        self.report = report
        self.readings: deque[Reading] = deque(maxlen=_WINDOW + 1)
        self.points: deque[Point] = deque(maxlen=SECONDS)

    def add(self, report: VersionReport, at: float) -> None:
        """Take a report, at that time."""
        self.report = report
        reading = Reading.of(report, at)
        if self.readings and not reading.continues(self.readings[-1]):
            self.readings.clear()
        while self.readings and at - self.readings[0].at > _STALE:
            self.readings.popleft()
        earlier = self.readings[-1] if self.readings else None
        self.readings.append(reading)
        self.points.append(point(earlier, self.window, reading))
        while at - self.points[0].at > SECONDS:
            self.points.popleft()

    @property
    def window(self) -> Reading | None:
        """The reading that quantiles and batches are counted from; None: from the load of the version."""
        return self.readings[0] if len(self.readings) > 1 else None


class Sampler:
    """The tracks of all versions by name and version. Reads nothing while there are no viewers.

    `most` viewers may watch at a time. For the event loop's thread.
    """

    def __init__(self, server: "ServerApi", interval: float = 1.0, most: int = 64) -> None:
        self.tracks: Mapping[Key, Track] = {}
        self.samples = 0
        self._server = server
        self._interval = interval
        self._most = most
        self._viewers = 0
        self._task: asyncio.Task[None] | None = None
        self._sampled = asyncio.Event()
        self._stopped = False

    @property
    def viewers(self) -> int:
        """How many streams are open."""
        return self._viewers

    @property
    def is_full(self) -> bool:
        """Whether no further viewer is taken."""
        return self._viewers >= self._most or self._stopped

    async def look(self) -> None:
        """Sample now, unless the last sample is fresh: for pages without a stream."""
        newest = max((track.points[-1].at for track in self.tracks.values()), default=0.0)
        if not self._viewers and monotonic() - newest > self._interval / 2:
            await self._sample()

    async def watch(self) -> AsyncGenerator[None, None]:
        """Yield after each sample, once a second, until the sampler stops. The generator must be closed."""
        self._viewers += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            while not self._stopped:
                await self._sampled.wait()
                if not self._stopped:
                    yield
        finally:
            self._viewers -= 1
            if not self._viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    def stop(self) -> None:
        """End every stream."""
        self._stopped = True
        self._notify()

    async def _run(self) -> None:
        due = monotonic()
        while not self._stopped:
            await self._sample()
            self._notify()
            due = max(due + self._interval, monotonic())
            await asyncio.sleep(due - monotonic())

    def _notify(self) -> None:
        self._sampled.set()
        self._sampled = asyncio.Event()

    async def _sample(self) -> None:
        """Read every version, in turns with the other work of the event loop."""
        tracks: dict[Key, Track] = {}
        at = monotonic()
        until = at + _TURN
        for report in self._server.version_reports():
            key = (report.name, report.version)
            track = self.tracks.get(key) or Track(report)
            track.add(report, at)
            tracks[key] = track
            if monotonic() > until:
                await asyncio.sleep(0)
                until = monotonic() + _TURN
        self.tracks = tracks
        self.samples += 1

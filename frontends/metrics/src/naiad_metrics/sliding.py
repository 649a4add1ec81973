"""Quantiles over the last minute of latencies, in little memory and with the rank of every duration."""

import math
from collections import deque
from collections.abc import Sequence

_Counts = dict[int, int]
_WINDOW = 60.0
_SLICE = 5.0
_PHASES = 5


class SlidingQuantiles:
    """Quantiles of several phases, by default five: a request, its wait, and three of its execution.

    Durations are counted by their seven leading bits, so that a quantile is within 1 % of the duration of its rank, and
    in slices of time, which are dropped as a whole.
    """

    __slots__ = ("_current", "_phases", "_slices", "_until")

    def __init__(self, phases: int = _PHASES) -> None:
        self._phases = phases
        self._slices: deque[tuple[float, list[_Counts]]] = deque()
        self._current: list[_Counts] = []
        self._until = -math.inf

    def add(self, now: float, totals: Sequence[int], queues: Sequence[int], phases: tuple[int, int, int]) -> None:
        """At `now` seconds requests of one batch were answered; everything else is in nanoseconds."""
        if now >= self._until:
            self._start_slice(now)
        requests, waits, inputs, infer, outputs = self._current
        input_ns, infer_ns, output_ns = phases
        for nanoseconds in totals:
            _count(requests, nanoseconds, 1)
        for nanoseconds in queues:
            _count(waits, nanoseconds, 1)
        times = len(totals)
        _count(inputs, input_ns, times)
        _count(infer, infer_ns, times)
        _count(outputs, output_ns, times)

    def add_each(self, now: float, durations: Sequence[int]) -> None:
        """Add one duration in nanoseconds to each of the first phases, at `now` seconds; the others did not happen."""
        if now >= self._until:
            self._start_slice(now)
        for counts, nanoseconds in zip(self._current, durations, strict=False):
            _count(counts, nanoseconds, 1)

    def values(self, now: float, quantiles: Sequence[float]) -> list[list[float]]:
        """For each phase the duration in nanoseconds at each of the quantiles, NaN when there was none."""
        self._drop(now)
        return [_values([counts[phase] for _, counts in self._slices], quantiles) for phase in range(self._phases)]

    def _start_slice(self, now: float) -> None:
        self._drop(now)
        self._current = [{} for _ in range(self._phases)]
        self._slices.append((now, self._current))
        self._until = now + _SLICE

    def _drop(self, now: float) -> None:
        while self._slices and now - self._slices[0][0] >= _WINDOW:
            self._slices.popleft()


def _count(counts: _Counts, nanoseconds: int, times: int) -> None:
    bits = nanoseconds.bit_length()
    shift = bits - 7 if bits > 7 else 0
    key = (shift << 7) | (nanoseconds >> shift)
    counts[key] = counts.get(key, 0) + times


def _values(slices: Sequence[_Counts], quantiles: Sequence[float]) -> list[float]:
    together: _Counts = {}
    for counts in slices:
        for key, times in counts.items():
            together[key] = together.get(key, 0) + times
    ascending, total = sorted(together.items()), sum(together.values())
    return [_at(ascending, max(1, math.ceil(quantile * total))) for quantile in quantiles]


def _at(ascending: Sequence[tuple[int, int]], rank: int) -> float:
    for key, times in ascending:
        rank -= times
        if rank <= 0:
            shift = key >> 7
            return ((key & 127) << shift) + ((1 << shift) - 1) / 2
    return math.nan

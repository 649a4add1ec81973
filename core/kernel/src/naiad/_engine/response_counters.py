"""Counting the responses of models that answer a request several times, by their place among a request's responses."""

from enum import IntEnum

from naiad.reports import Duration, ResponseStatistics

_APART = 1000
"""So many responses of a request are counted each by itself; all later ones together, for no stream may end."""


class ResponseKind(IntEnum):
    """What became of one response; a number, because counters in lists cost half of those in dictionaries."""

    SUCCESS = 0
    FAIL = 1
    EMPTY_RESPONSE = 2
    """The one without outputs that only says that the request is over."""
    CANCEL = 3
    """Nobody waited for it any more."""


class _Counted:
    """What became of the responses of one place, and how long they took in nanoseconds."""

    __slots__ = ("counts", "infer_ns", "nanoseconds", "output_ns")

    def __init__(self) -> None:
        self.counts = [0] * len(ResponseKind)
        self.nanoseconds = [0] * len(ResponseKind)
        self.infer_ns = self.output_ns = 0

    def report(self) -> ResponseStatistics:
        with_outputs = self.counts[ResponseKind.SUCCESS] + self.counts[ResponseKind.FAIL]
        return ResponseStatistics(
            Duration(with_outputs, self.infer_ns),
            Duration(with_outputs, self.output_ns),
            *map(Duration, self.counts, self.nanoseconds),
        )


class ResponseCounters:
    """The response counters of one model version."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: list[_Counted] = []

    def add(self, index: int, infer_ns: int, output_ns: int, kind: ResponseKind) -> None:
        """The response of that place, from 0 up and one after the other, took so long to compute and to read."""
        place = min(index, _APART)
        places = self._places
        while len(places) <= place:
            places.append(_Counted())
        counted = places[place]
        counted.counts[kind] += 1
        counted.nanoseconds[kind] += infer_ns + output_ns
        if kind <= ResponseKind.FAIL:
            counted.infer_ns += infer_ns
            counted.output_ns += output_ns

    def report(self) -> dict[str, ResponseStatistics]:
        """The counters as they stand, by place."""
        return {str(place): counted.report() for place, counted in enumerate(self._places)}

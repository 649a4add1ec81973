"""Counting what a response cache does for one model version."""

from time import monotonic

from naiad._kernel.metrics.sliding import SlidingQuantiles
from naiad.reports import Duration


class CacheCounters:
    """Hits and misses, and the nanoseconds that they took: of a miss the lookup and the insertion.

    With `summaries` the distributions of these times over the last minute are kept as well.
    """

    def __init__(self, summaries: bool = False) -> None:
        self.hits = self.hit_ns = self.misses = self.miss_ns = 0
        self.misses_in_a_row = 0
        self.hit_times = SlidingQuantiles(1) if summaries else None
        self.miss_times = SlidingQuantiles(1) if summaries else None

    def hit(self, lookup_ns: int) -> None:
        """A lookup found something."""
        self.hits += 1
        self.misses_in_a_row = 0
        self.hit_ns += lookup_ns
        if self.hit_times is not None:
            self.hit_times.add_each(monotonic(), (lookup_ns,))

    def missed(self, lookup_ns: int) -> None:
        """A lookup found nothing."""
        self.misses += 1
        self.misses_in_a_row += 1
        self.miss_ns += lookup_ns

    def inserted(self, lookup_ns: int, insertion_ns: int) -> None:
        """The answer to a request that was missed was handed to the cache."""
        self.miss_ns += insertion_ns
        if self.miss_times is not None:
            self.miss_times.add_each(monotonic(), (lookup_ns + insertion_ns,))

    @property
    def durations(self) -> tuple[Duration, Duration]:
        """Those of the hits and of the misses."""
        return Duration(self.hits, self.hit_ns), Duration(self.misses, self.miss_ns)

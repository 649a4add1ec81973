"""Counters of the response cache for one model version."""

from naiad_statistics.observers import VersionObserver
from naiad_statistics.reports import CacheUse, Duration


class CacheCounters:
    """Hits and misses, and the nanoseconds that they took: of a miss the lookup and the insertion.

    `observer` makes what observes these times, None without metrics.
    """

    def __init__(self, observer: VersionObserver | None = None) -> None:
        self.hits = self.hit_ns = self.misses = self.miss_ns = 0
        self.misses_in_a_row = 0
        self.hit_times = None if observer is None else observer.durations()
        self.miss_times = None if observer is None else observer.durations()

    def hit(self, lookup_ns: int) -> None:
        """A lookup found something."""
        self.hits += 1
        self.misses_in_a_row = 0
        self.hit_ns += lookup_ns
        if self.hit_times is not None:
            self.hit_times.add(lookup_ns)

    def missed(self, lookup_ns: int) -> None:
        """A lookup found nothing."""
        self.misses += 1
        self.misses_in_a_row += 1
        self.miss_ns += lookup_ns

    def inserted(self, lookup_ns: int, insertion_ns: int) -> None:
        """The answer to a request that was missed was handed to the cache."""
        self.miss_ns += insertion_ns
        if self.miss_times is not None:
            self.miss_times.add(lookup_ns + insertion_ns)

    def report(self) -> CacheUse:
        """The counters as they stand."""
        hits, misses = Duration(self.hits, self.hit_ns), Duration(self.misses, self.miss_ns)
        return CacheUse(hits, misses, self.hit_times, self.miss_times)

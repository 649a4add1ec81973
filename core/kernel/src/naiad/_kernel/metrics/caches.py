"""What is told of response caches: for each version that one answers for, and of the server's cache itself."""

from time import monotonic
from typing import TYPE_CHECKING

from naiad._kernel.metrics import families
from naiad._kernel.metrics.collecting import Collection
from naiad._kernel.metrics.options import MetricsConfig
from naiad._kernel.metrics.snapshots import LabelPairs, Quantiles

if TYPE_CHECKING:
    from naiad._kernel.cache_counters import CacheCounters
    from naiad._kernel.caching.opened import OpenedCache


def add_cached(collection: Collection, counters: "CacheCounters", labels: LabelPairs, config: MetricsConfig) -> None:
    """What the cache did for one version."""
    times = (counters.hits, counters.misses)
    sums = (counters.hit_ns // 1000, counters.miss_ns // 1000)
    counts, durations = families.CACHE_COUNTERS[:2], families.CACHE_COUNTERS[2:]
    collection.add_all(counts, labels, times)
    if config.counter_latencies:
        collection.add_all(durations, labels, sums)
    for family, sliding, count, microseconds in zip(
        families.CACHE_SUMMARIES, (counters.hit_times, counters.miss_times), times, sums, strict=True
    ):
        if sliding is not None:
            (values,) = sliding.values(monotonic(), config.quantiles)
            told = tuple(zip(config.quantiles, [value / 1000 for value in values], strict=True))
            collection.add(family, labels, Quantiles(told, count, microseconds))


def add_cache(collection: Collection, cache: "OpenedCache") -> None:
    """What the server's cache did, and what it holds."""
    report = cache.report()
    values = (
        report.lookups,
        report.hits,
        report.insertions,
        report.evictions,
        report.failures,
        report.entries,
        report.byte_size,
        report.capacity,
        cache.breaker.skipped,
    )
    for family, value in zip(families.CACHE, values, strict=True):
        if value is not None:
            collection.add(family, (("cache", cache.name),), value)
    full = None if report.byte_size is None or not report.capacity else report.byte_size / report.capacity
    known = (report.lookups, report.hits, report.lookups - report.hits, report.evictions, report.entries, full)
    collection.add_all(families.CACHE_AS_TRITONS, (), known)

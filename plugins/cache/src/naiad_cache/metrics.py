"""Metrics of the response cache: lookups, hits, insertions, evictions, durations, entries and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

from naiad_kit.caches import CacheReport
from naiad_kit.metrics import LabelPairs, MetricFamily, MetricKind, Sample

_OWN: tuple[tuple[str, MetricKind, str], ...] = (
    ("naiad_cache_lookups_total", "counter", "Lookups in the response cache"),
    ("naiad_cache_hits_total", "counter", "Lookups that found a response"),
    ("naiad_cache_insertions_total", "counter", "Responses that the cache took"),
    ("naiad_cache_evictions_total", "counter", "Responses that made room for others"),
    ("naiad_cache_failures_total", "counter", "Lookups and insertions that the cache could not do"),
    ("naiad_cache_entries", "gauge", "Responses in the cache"),
    ("naiad_cache_bytes", "gauge", "Bytes that the responses in the cache take"),
    ("naiad_cache_capacity_bytes", "gauge", "Bytes that the responses in the cache may take"),
    ("naiad_cache_skipped_total", "counter", "Requests that went past a cache that did not answer"),
)
"""What the cache cannot say has no sample."""

_AS_TRITON: tuple[tuple[str, MetricKind, str], ...] = (
    ("nv_cache_num_lookups", "gauge", "Lookups in the response cache"),
    ("nv_cache_num_hits", "gauge", "Lookups that found a response"),
    ("nv_cache_num_misses", "gauge", "Lookups that found none"),
    ("nv_cache_num_evictions", "gauge", "Responses that made room for others"),
    ("nv_cache_num_entries", "gauge", "Responses in the cache"),
    ("nv_cache_util", "gauge", "How full the cache is [0.0 - 1.0]"),
    ("nv_cache_lookup_duration", "gauge", "Duration of all lookups in the response cache, in microseconds"),
    ("nv_cache_insertion_duration", "gauge", "Duration of all insertions into the response cache, in microseconds"),
)
"""As Triton's local cache has them: gauges without labels."""


@dataclass(slots=True)
class CacheTimes:
    """Nanoseconds that all lookups and all insertions of a server took, those of every model added up."""

    lookup_ns: int = 0
    insertion_ns: int = 0


def cache_metrics(name: str, report: CacheReport, skipped: int, times: CacheTimes) -> list[MetricFamily]:
    """The metrics of the cache of that name; `skipped` requests went past it."""
    own = (
        report.lookups,
        report.hits,
        report.insertions,
        report.evictions,
        report.failures,
        report.entries,
        report.byte_size,
        report.capacity,
        skipped,
    )
    full = None if report.byte_size is None or not report.capacity else report.byte_size / report.capacity
    as_triton = (
        report.lookups,
        report.hits,
        report.lookups - report.hits,
        report.evictions,
        report.entries,
        full,
        times.lookup_ns // 1000,
        times.insertion_ns // 1000,
    )
    return [*_families(_OWN, (("cache", name),), own), *_families(_AS_TRITON, (), as_triton)]


def _families(
    texts: Sequence[tuple[str, MetricKind, str]], labels: LabelPairs, values: Sequence[float | None]
) -> list[MetricFamily]:
    return [
        MetricFamily(name, text, kind, [] if value is None else [Sample(labels, value)])
        for (name, kind, text), value in zip(texts, values, strict=True)
    ]

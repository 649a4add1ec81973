"""Metrics: what the server tells of its own as snapshots, and the counters, gauges and histograms of models.

naiad.Server.metrics.collect() -> list[MetricFamily]      what a frontend renders
ModelContext.metrics: MetricRegistry                      where a model makes metrics of its own
"""

from naiad._kernel.metrics.registry import Family, Metric, MetricRegistry
from naiad._kernel.metrics.snapshots import Distribution, MetricFamily, MetricKind, Quantiles, Sample

__all__ = ["Distribution", "Family", "Metric", "MetricFamily", "MetricKind", "MetricRegistry", "Quantiles", "Sample"]

"""The metrics service, which makes the observers of the latencies of model versions.

The distribution naiad-metrics brings it. Without it the kernel counts what the statistics extension reports.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from naiad_config import ModelConfig
from naiad_statistics.observers import VersionObserver


@runtime_checkable
class Metrics(Protocol):
    """The metrics service as the kernel uses it; `naiad_kit.metrics.MetricsApi` has the rest."""

    name: str = "metrics"

    def observer(self, config: ModelConfig) -> VersionObserver | None:
        """The observer of a version with that configuration, None if metrics are off. For any thread."""

    def problems(self, config: ModelConfig) -> Sequence[str]:
        """A sentence for each setting of a configuration that has no effect on metrics. For any thread."""

"""Metrics: snapshots of them, those that models make for themselves, and the metrics service.

server.service(Metrics).collect() -> list[MetricFamily]   what a frontend renders
ModelContext.metrics: MetricRegistry                      where a model makes metrics of its own

Without a metrics service the kernel counts what the statistics extension reports, and the metrics of models are counted
and checked as ever, and shown to nobody.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad.metric_snapshots import Distribution, LabelPairs, MetricFamily, MetricKind, Quantiles, Sample
from naiad.model_metrics import Family, Metric, MetricRegistry, MetricStore
from naiad_config import ModelConfig

__all__ = [
    "Distribution",
    "DurationObserver",
    "ExecutionObserver",
    "Family",
    "LabelPairs",
    "Metric",
    "MetricFamily",
    "MetricKind",
    "MetricRegistry",
    "MetricStore",
    "Metrics",
    "Quantiles",
    "Sample",
    "VersionObserver",
    "metrics_of",
]


class ExecutionObserver(Protocol):
    """Observes the latencies of one model version on one device. Called on the event loop's thread, once a batch."""

    def answered(
        self, totals: Sequence[int], queues: Sequence[int], phases: tuple[int, int, int], streamed: bool = False
    ) -> None:
        """Requests of one execution got their answers.

        `totals` and `queues` are the nanoseconds of each from its arrival to its answer and to its execution, `phases`
        the compute input, infer and output of the batch. Unless they were `streamed`, these are their first responses.
        """
        ...

    def hit(self, total_ns: int) -> None:
        """A request got its only response after so many nanoseconds without a queue or an execution."""
        ...

    def first_responses(self, waits: Sequence[int]) -> None:
        """Requests got their first responses after so many nanoseconds each."""
        ...


class DurationObserver(Protocol):
    """Observes how long one thing takes. For the event loop's thread."""

    def add(self, nanoseconds: int) -> None:
        """It took so long once."""
        ...


class VersionObserver(Protocol):
    """Makes the observers of one model version."""

    def executions(self) -> ExecutionObserver:
        """A new observer of the executions on one device."""
        ...

    def durations(self) -> DurationObserver | None:
        """A new observer of durations, None where the options ask for no summaries."""
        ...


@runtime_checkable
class Metrics(Protocol):
    """The metrics service of a server. For the event loop's thread, except where a method says otherwise."""

    name: str = "metrics"

    def collect(self) -> list[MetricFamily]:
        """Every metric as it stands, those of GPUs as of the last `scrape`."""
        ...

    def collect_made_by_models(self) -> list[MetricFamily]:
        """The metrics that models make for themselves, which cost nothing where there are none."""
        ...

    async def scrape(self) -> list[MetricFamily]:
        """Every metric, those of the GPUs included, in turns with the other work of the event loop."""
        ...

    def registry(self) -> MetricRegistry:
        """A new registry for a model version. For any thread."""
        ...

    def observer(self, config: ModelConfig) -> VersionObserver | None:
        """What observes a version with that configuration, None where metrics are off. For any thread."""
        ...

    def problems(self, config: ModelConfig) -> Sequence[str]:
        """What in a configuration has no effect on metrics, a sentence each. For any thread."""
        ...


class _HasServices(Protocol):
    """A server, as far as `metrics_of` needs it."""

    def service(self, kind: type[Metrics]) -> Metrics:
        """The service of that kind. Raises UnsupportedError where no plugin brings it."""
        ...


def metrics_of(server: _HasServices) -> Metrics | None:
    """The metrics service of a server, None where no plugin brings one."""
    try:
        return server.service(Metrics)
    except UnsupportedError:
        return None

"""Metrics: values at one moment, the metrics that models make, and the service that observes and collects.

The distribution naiad-metrics brings the service. Without it the kernel counts what the statistics extension reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad_config import ModelConfig

MetricKind = Literal["counter", "gauge", "histogram", "summary"]
"""The type of a metric in Prometheus."""

LabelPairs = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Distribution:
    """The value of a histogram; not frozen, as are all values here, because a scrape makes thousands.

    `counts` has one number more than `bounds`: `counts[i]` observations were at most `bounds[i]` and more than the
    bound before it, the last are above all bounds. `sum` is the sum of the observations.
    """

    bounds: Sequence[float]
    counts: Sequence[int]
    sum: float


@dataclass(slots=True)
class Quantiles:
    """The value of a summary: `values` by quantile over the last minute (NaN without any), `count` and `sum` of all."""

    values: Sequence[tuple[float, float]]
    count: int
    sum: float


@dataclass(slots=True)
class Sample:
    """One series of a family: its label pairs and its value, which is of the family's kind."""

    labels: LabelPairs
    value: float | Distribution | Quantiles


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All series of one name."""

    name: str
    help: str
    kind: MetricKind
    samples: Sequence[Sample]


class Metric(Protocol):
    """One series of a model. Every method is for any thread, and raises InvalidArgumentError for an invalid number.

    Raises InvalidArgumentError after it, its family or its registry was closed as well, and UnsupportedError for a
    metric of another kind.
    """

    def increment(self, value: float = 1.0) -> None:
        """Add to a counter, which only goes up, or to a gauge."""

    def set(self, value: float) -> None:
        """Set a gauge."""

    def observe(self, value: float) -> None:
        """Count a value in a histogram, NaN above all bounds."""

    def value(self) -> float:
        """The value of a counter or gauge."""

    def close(self) -> None:
        """Remove the series, unless another model uses it. Harmless when repeated."""


class Family(Protocol):
    """The metrics of one name that a model makes. Every method is for any thread."""

    def metric(self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None) -> Metric:
        """The metric with these labels, which starts at 0; the same labels again continue it.

        Making a metric costs more than counting with it. Raises InvalidArgumentError for labels that Prometheus does
        not allow, and for a histogram whose buckets nothing lists or that has other buckets already.
        """

    def close(self) -> None:
        """Close every metric that was made here. Harmless when repeated."""


class MetricRegistry(Protocol):
    """Makes the metrics of one model version, which last until the server closes the model. For any thread.

    Models that count under the same name and labels count together.
    """

    def family(
        self,
        name: str,
        description: str,
        kind: Literal["counter", "gauge", "histogram"],
        buckets: Sequence[float] = (),
    ) -> Family:
        """The family of that name. `buckets` are the upper bounds for metrics of a histogram that name none.

        Raises InvalidArgumentError for a name that Prometheus does not allow or the server uses, for a description that
        is not text, for buckets that do not ascend, and for another kind than the family has already. The description
        that came first stays.
        """

    def close(self) -> None:
        """Close every family that was made here."""


class NoMetrics:
    """The metrics of a model in a server without naiad-metrics."""

    def family(self, name: str, description: str, kind: str, buckets: Sequence[float] = ()) -> NoReturn:
        """Raises UnsupportedError."""
        raise UnsupportedError(f"there is no registry for metric '{name}': pip install 'naiad-metrics'")

    def close(self) -> None:
        """Nothing to close."""


class ExecutionObserver(Protocol):
    """Observes the latencies of one model version on one device, once a batch, on the event loop's thread."""

    def answered(
        self, totals: Sequence[int], queues: Sequence[int], phases: tuple[int, int, int], streamed: bool = False
    ) -> None:
        """The requests of one execution were answered.

        `totals` and `queues` are the nanoseconds of each from its arrival to its answer and to its execution, `phases`
        the compute input, infer and output of the batch. Unless they were `streamed`, these are their first responses.
        """

    def hit(self, total_ns: int) -> None:
        """A request was answered after so many nanoseconds, without a queue and an execution."""

    def first_responses(self, waits: Sequence[int]) -> None:
        """Requests got their first responses after so many nanoseconds each."""


class DurationObserver(Protocol):
    """Observes the durations of one operation, on the event loop's thread."""

    def add(self, nanoseconds: int) -> None:
        """The operation took so long once."""


class VersionObserver(Protocol):
    """Makes the observers of one model version."""

    def executions(self) -> ExecutionObserver:
        """A new observer of the executions on one device."""

    def durations(self) -> DurationObserver | None:
        """A new observer of durations, None if the options ask for no summaries."""


@runtime_checkable
class Metrics(Protocol):
    """The metrics service, as far as models are loaded with it; `naiad_kit.metrics.MetricsApi` has the rest."""

    name: str = "metrics"

    def registry(self) -> MetricRegistry:
        """A new registry for a model version. For any thread."""

    def observer(self, config: ModelConfig) -> VersionObserver | None:
        """The observer of a version with that configuration, None if metrics are off. For any thread."""

    def problems(self, config: ModelConfig) -> Sequence[str]:
        """A sentence for each setting of a configuration that has no effect on metrics. For any thread."""

"""Metrics: their values at one moment, the metrics that models make, and the service that collects them."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from naiad.errors import UnsupportedError
from naiad.extend import ModelService
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.metrics import Metrics
from naiad.server import ServerApi
from naiad_config import ModelConfig

_logger = logging.getLogger("naiad")

MetricKind = Literal["counter", "gauge", "histogram", "summary"]
"""The type of a metric in Prometheus."""

LabelPairs = tuple[tuple[str, str], ...]

MODEL_PROCESS_MEMORY = "naiad_model_process_memory_bytes"
"""The metric of the resident memory of model processes; `instance` among its labels where each has one of its own."""

_NO_LETTER = re.compile("[^a-zA-Z0-9_]")


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


@runtime_checkable
class MetricSource(Protocol):
    """A factory of execution gates or a service with metrics of its own."""

    def metrics(self) -> Sequence[MetricFamily]:
        """The metrics now, always of the same names, which models cannot use."""


@runtime_checkable
class MetricsApi(Metrics, ModelService, Protocol):
    """The metrics service of a server, with a `MetricRegistry` for each version. For the event loop's thread."""

    def collect(self) -> list[MetricFamily]:
        """Every metric now, those of GPUs as of the last `scrape`."""

    def collect_made_by_models(self) -> list[MetricFamily]:
        """The metrics that models make; free of cost without any."""

    async def scrape(self) -> list[MetricFamily]:
        """Every metric, those of the GPUs included, in turns with the other work of the event loop."""


def model_labels(config: ModelConfig, version: int) -> LabelPairs:
    """The labels of every metric of a model version: its name, its number, and the tags of its configuration."""
    tags = {f"_{_NO_LETTER.sub('_', name)}": value for name, value in config.metric_tags.items()}
    return tuple(sorted({**tags, "model": config.name, "version": str(version)}.items()))


def metrics_of(server: ServerApi) -> MetricsApi | None:
    """The metrics service of a server, None where no plugin brings one."""
    try:
        return server.service(MetricsApi)
    except UnsupportedError:
        return None


def metrics_of_plugins(server: ServerApi) -> list[MetricFamily]:
    """The metrics of execution gates and services now, also of families without samples.

    A source whose code raises is left out.
    """
    families: list[MetricFamily] = []
    for source in server.contributors():
        if isinstance(source, MetricSource):
            try:
                families.extend(source.metrics())
            except BaseException as error:  # noqa: BLE001 - the metrics of the others are worth more
                raise_interrupt(error)
                _logger.error("reading the metrics of a %s failed: %s", type(source).__name__, describe_error(error))
    return families

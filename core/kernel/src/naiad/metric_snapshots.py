"""Metrics as they stand at one moment, free of any text format.

Samples and their values are not frozen, because a server with many models tells thousands of them in a scrape.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["counter", "gauge", "histogram", "summary"]
"""What a metric is, in the words of Prometheus."""

LabelPairs = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Distribution:
    """The value of a histogram.

    `counts` has one number more than `bounds`: `counts[i]` observations were at most `bounds[i]` and more than the
    bound before it, the last are above all bounds. `sum` adds up what was observed.
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
    """One series of a family: its label pairs, and its value, which is of the family's kind."""

    labels: LabelPairs
    value: float | Distribution | Quantiles


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All series of one name."""

    name: str
    help: str
    kind: MetricKind
    samples: Sequence[Sample]

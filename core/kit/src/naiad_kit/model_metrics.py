"""Registry of custom metrics of models: series shared by name between models, removed with their last user.

Implements the protocols of `naiad_kit.metrics` for naiad-metrics, and for models in a server without it.
"""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isnan
from typing import Literal

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_kit.metric_rules import checked_bounds, checked_description, checked_labels, checked_name, checked_number
from naiad_kit.metrics import Distribution, LabelPairs, MetricFamily, MetricKind, MetricsApi, Sample


class MetricRegistry:
    """A `naiad_kit.metrics.MetricRegistry`. Registries over one store share their families.

    A series exists until every family that made it is closed; the server closes a model's registry after the model.
    """

    def __init__(self, store: "MetricStore | None" = None) -> None:
        self._store = store or MetricStore()
        self._families: set[Family] = set()

    def family(
        self,
        name: str,
        description: str,
        kind: Literal["counter", "gauge", "histogram"],
        buckets: Sequence[float] = (),
    ) -> "Family":
        """The family of that name, new or shared. Raises InvalidArgumentError."""
        if kind not in ("counter", "gauge", "histogram"):
            raise InvalidArgumentError(f"metric '{name}' cannot be a '{kind}'; it can be a counter, gauge or histogram")
        name, description = checked_name(name), checked_description(name, description)
        bounds = checked_bounds(name, kind, buckets)
        with self._store.lock:
            family = Family(self._families.discard, self._store, self._store.family(name, description, kind), bounds)
            self._families.add(family)
        return family

    def collect(self) -> list[MetricFamily]:
        """Every metric now, those of the registries over the same store included."""
        with self._store.lock:
            return self._store.collect()

    def loaded(self, version: object) -> None:
        """Nothing to do: a model may make metrics from the start of its load."""

    def close(self) -> None:
        """Close every family of this registry. New families can be added afterwards."""
        for family in tuple(self._families):
            family.close()


class Family:
    """One registry's use of a shared family. Its metrics cannot be used after `close`."""

    def __init__(
        self,
        forget: Callable[["Family"], None],
        store: "MetricStore",
        shared: "SharedFamily",
        bounds: tuple[float, ...],
    ) -> None:
        self.closed = False
        self._forget = forget
        self._store = store
        self._shared = shared
        self._bounds = bounds
        self._held: Counter[Series] = Counter()

    def metric(self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None) -> "Metric":
        """The metric with these labels, new or shared. Raises InvalidArgumentError.

        A histogram whose list of buckets is empty has one bucket, for everything.
        """
        shared = self._shared
        bounds = self._bounds if buckets is None else checked_bounds(shared.name, shared.kind, buckets)
        if shared.kind == "histogram" and buckets is None and not bounds:
            raise InvalidArgumentError(
                f"histogram '{shared.name}' has no buckets; name their upper bounds in ascending order"
            )
        pairs = checked_labels(shared.name, {} if labels is None else labels)
        with self._store.lock:
            if self.closed:
                raise _gone(shared.name, "family")
            series = self._store.series(shared, pairs, bounds)
            self._held[series] += 1
        return Metric(self, self._store, series)

    def close(self) -> None:
        """Remove every metric of this family. Harmless when repeated."""
        with self._store.lock:
            if self.closed:
                return
            self.closed = True
            self._forget(self)
            for series, times in self._held.items():
                self._store.release(self._shared, series, times)
            self._store.release_family(self._shared)

    def _release(self, series: "Series") -> None:
        with self._store.lock:
            if not self.closed:
                self._held[series] -= 1
                if not self._held[series]:
                    del self._held[series]  # the same labels may be used again, by another model
                self._store.release(self._shared, series, 1)


class Metric:
    """One use of a series. Raises InvalidArgumentError after it, its family or its model was closed."""

    __slots__ = ("_closed", "_family", "_lock", "_series")

    def __init__(self, family: Family, store: "MetricStore", series: "Series") -> None:
        self._family = family
        self._lock = store.lock
        self._series = series
        self._closed = False

    def increment(self, value: float = 1.0) -> None:
        """Add to a counter or gauge. Raises InvalidArgumentError when a counter would go down."""
        series = self._open("increment", "counter", "gauge")
        number = checked_number(series.name, value)
        if series.kind == "counter" and not number >= 0:
            raise InvalidArgumentError(f"counter '{series.name}' can only go up, not by {value}; use a gauge")
        with self._lock:
            series.value += number

    def set(self, value: float) -> None:
        """Set a gauge."""
        series = self._open("set", "gauge")
        number = checked_number(series.name, value)
        with self._lock:
            series.value = number

    def observe(self, value: float) -> None:
        """Count a value in a histogram, NaN above all bounds."""
        series = self._open("observe", "histogram")
        number = checked_number(series.name, value)
        bucket = -1 if isnan(number) else bisect_left(series.bounds, number)
        with self._lock:
            series.counts[bucket] += 1
            series.value += number

    def value(self) -> float:
        """The value of a counter or gauge."""
        return self._open("value", "counter", "gauge").value

    def close(self) -> None:
        """Remove the series, unless another model uses it. Harmless when repeated."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._family._release(self._series)

    def _open(self, what: str, *kinds: str) -> "Series":
        series = self._series
        if self._closed or self._family.closed:
            raise _gone(series.name, "family" if self._family.closed else "metric")
        if series.kind not in kinds:
            raise UnsupportedError(
                f"'{series.name}' is a {series.kind}, which has no '{what}'; a {' or '.join(kinds)} has"
            )
        return series


class Series:
    """One series and its value, for a histogram the sum of its observations."""

    __slots__ = ("bounds", "counts", "holders", "kind", "labels", "name", "value")

    def __init__(self, name: str, kind: MetricKind, labels: LabelPairs, bounds: tuple[float, ...]) -> None:
        self.name = name
        self.kind = kind
        self.labels = labels
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.value = 0.0
        self.holders = 0

    def sample(self) -> Sample:
        """The series now."""
        if self.kind == "histogram":
            return Sample(self.labels, Distribution(self.bounds, tuple(self.counts), self.value))
        return Sample(self.labels, self.value)


class SharedFamily:
    """All series of one name, of all models."""

    __slots__ = ("description", "holders", "kind", "name", "series")

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        self.name = name
        self.description = description
        self.kind = kind
        self.series: dict[LabelPairs, Series] = {}
        self.holders = 0


class MetricStore:
    """The families of all models of a server; callers of its methods hold `lock`.

    Models cannot use the names in `reserved`. No two families have a line of text in common: scrapers refuse a page
    that has one line twice.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self.lock = threading.RLock()
        self._reserved = frozenset(reserved)
        self._families: dict[str, SharedFamily] = {}
        self._lines: dict[str, str] = {}

    def family(self, name: str, description: str, kind: MetricKind) -> SharedFamily:
        """Use a family, whose first description stays. Raises InvalidArgumentError for a name in another use."""
        family = self._families.get(name)
        if family is None:
            self._claim(name, kind)
            family = self._families[name] = SharedFamily(name, description, kind)
        elif family.kind != kind:
            raise InvalidArgumentError(
                f"metric family '{name}' is there already, as a {family.kind} described as "
                f"'{family.description}'; use the same kind, or another name"
            )
        family.holders += 1
        return family

    def series(self, family: SharedFamily, pairs: LabelPairs, bounds: tuple[float, ...]) -> Series:
        """Use a series of a family. Raises InvalidArgumentError for other buckets than it has."""
        series = family.series.get(pairs)
        if series is None:
            series = family.series[pairs] = Series(family.name, family.kind, pairs, bounds)
        elif series.bounds != bounds:
            raise InvalidArgumentError(
                f"histogram '{family.name}' has the buckets {list(series.bounds)} for these labels, not {list(bounds)}"
            )
        series.holders += 1
        return series

    def release(self, family: SharedFamily, series: Series, times: int) -> None:
        """Release so many uses of a series; the last one removes it."""
        series.holders -= times
        if series.holders <= 0:
            del family.series[series.labels]

    def release_family(self, family: SharedFamily) -> None:
        """Release a family; the last release frees its name."""
        family.holders -= 1
        if family.holders <= 0:
            del self._families[family.name]
            self._lines = {line: owner for line, owner in self._lines.items() if owner != family.name}

    def reserve(self, names: Collection[str]) -> None:
        """Keep models from using these names."""
        self._reserved |= frozenset(names)

    def collect(self) -> list[MetricFamily]:
        """Every family that has a series, now."""
        return [
            MetricFamily(each.name, each.description, each.kind, [one.sample() for one in list(each.series.values())])
            for each in list(self._families.values())  # the garbage collector may close some meanwhile
            if each.series
        ]

    def _claim(self, name: str, kind: MetricKind) -> None:
        lines = line_names(name, kind)
        for line in lines:
            owner = self._lines.get(line, "the server" if line in self._reserved else "")
            if owner:
                raise InvalidArgumentError(
                    f"metric '{name}' needs the name '{line}', which {owner} uses; choose another"
                )
        self._lines.update(dict.fromkeys(lines, name))


def registry_of(context: ModelContext) -> MetricRegistry:
    """The registry of the model of that context; without naiad-metrics a new one, whose metrics no page shows."""
    registry: MetricRegistry | None = context.parts.get(MetricsApi.name)
    return MetricRegistry() if registry is None else registry


def line_names(name: str, kind: MetricKind) -> tuple[str, ...]:
    """The names of the lines of text that a family is written in."""
    if kind == "histogram":
        return (name, f"{name}_bucket", f"{name}_count", f"{name}_sum")
    return (name, f"{name}_count", f"{name}_sum") if kind == "summary" else (name,)


def _gone(name: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"metric '{name}' cannot be used any more: the {what} has been deleted, or its model closed"
    )

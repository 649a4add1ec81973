"""Metrics that models make for themselves: shared by name in a server, and removed with the last model using them."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isnan
from typing import Literal

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.metric_rules import checked_bounds, checked_description, checked_labels, checked_name, checked_number
from naiad.metric_snapshots import Distribution, LabelPairs, MetricFamily, MetricKind, Sample


class MetricRegistry:
    """Where one model version makes its metrics. Every method here, and of what it makes, is for any thread.

    The registries of a server share their families: models that count under the same name and labels count together,
    and a series is there until everybody who made it has closed it. The server closes a model's registry when it has
    closed the model.
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
        """The family of that name. `buckets` are the upper bounds of a histogram's buckets, where metrics name none.

        Raises InvalidArgumentError for a name that Prometheus does not allow or the server uses, for a description
        that is no text, for buckets that do not ascend, and when there is a family of that name with another kind or
        description.
        """
        if kind not in ("counter", "gauge", "histogram"):
            raise InvalidArgumentError(f"metric '{name}' cannot be a '{kind}'; it can be a counter, gauge or histogram")
        name, description = checked_name(name), checked_description(name, description)
        bounds = checked_bounds(name, kind, buckets)
        with self._store.lock:
            family = Family(self._families.discard, self._store, self._store.family(name, description, kind), bounds)
            self._families.add(family)
        return family

    def collect(self) -> list[MetricFamily]:
        """Every metric as it stands, also those of the registries that share families with this one."""
        with self._store.lock:
            return self._store.collect()

    def close(self) -> None:
        """Remove what was made here. More can be made afterwards."""
        for family in tuple(self._families):
            family.close()


class Family:
    """A registry's hold on a family. After `close` its metrics can be used no more."""

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
        """The metric with these labels, which starts at 0; the same again goes on where it stands.

        Keep it for as long as it is used: it costs more to make than to count with. Raises InvalidArgumentError for
        labels that Prometheus does not allow, and for a histogram without buckets or with others than it has.
        """
        shared = self._shared
        bounds = self._bounds if buckets is None else checked_bounds(shared.name, shared.kind, buckets)
        if shared.kind == "histogram" and not bounds:
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
        """Remove every metric that was made here; once more does no harm."""
        with self._store.lock:
            if self.closed:
                return
            self.closed = True
            self._forget(self)
            for series, times in self._held.items():
                self._store.release(self._shared, series, times)
            self._store.release_family(self._shared)

    def _let_go(self, series: "Series") -> None:
        with self._store.lock:
            if not self.closed:
                self._held[series] -= 1
                if not self._held[series]:
                    del self._held[series]  # another of these labels may be made anew, by somebody else
                self._store.release(self._shared, series, 1)


class Metric:
    """A hold on one series. Raises InvalidArgumentError after it, its family or its model was closed."""

    __slots__ = ("_closed", "_family", "_lock", "_series")

    def __init__(self, family: Family, store: "MetricStore", series: "Series") -> None:
        self._family = family
        self._lock = store.lock
        self._series = series
        self._closed = False

    def increment(self, value: float = 1.0) -> None:
        """Add to a counter or gauge. Raises InvalidArgumentError when a counter would go down, and for no number."""
        series = self._open("increment", "counter", "gauge")
        number = checked_number(series.name, value)
        if series.kind == "counter" and not number >= 0:
            raise InvalidArgumentError(f"counter '{series.name}' can only go up, and was given {value}; use a gauge")
        with self._lock:
            series.value += number

    def set(self, value: float) -> None:
        """Make a gauge stand at that value. Raises InvalidArgumentError for what is no number."""
        series = self._open("set", "gauge")
        number = checked_number(series.name, value)
        with self._lock:
            series.value = number

    def observe(self, value: float) -> None:
        """Count a value in a histogram, NaN above all bounds. Raises InvalidArgumentError for what is no number."""
        series = self._open("observe", "histogram")
        number = checked_number(series.name, value)
        bucket = -1 if isnan(number) else bisect_left(series.bounds, number)
        with self._lock:
            series.counts[bucket] += 1
            series.value += number

    def value(self) -> float:
        """Where a counter or gauge stands."""
        return self._open("value", "counter", "gauge").value

    def close(self) -> None:
        """Remove it, unless others made it too; once more does no harm."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._family._let_go(self._series)

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
    """One series and its value: of a histogram, the sum of what was observed."""

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
        """The series as it stands."""
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
    """The families of all models of a server; callers of its methods, and of its values, hold `lock`.

    `reserved` are names that models cannot use. Families cannot clash: the text that scrapers read must not have one
    line twice, or all of it is lost.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self.lock = threading.RLock()
        self._reserved = frozenset(reserved)
        self._families: dict[str, SharedFamily] = {}
        self._lines: dict[str, str] = {}

    def family(self, name: str, description: str, kind: MetricKind) -> SharedFamily:
        """Hold a family. Raises InvalidArgumentError for a name that is used for something else."""
        family = self._families.get(name)
        if family is None:
            self._claim(name, kind)
            family = self._families[name] = SharedFamily(name, description, kind)
        elif family.kind != kind or family.description != description:
            raise InvalidArgumentError(
                f"metric family '{name}' is there already, as a {family.kind} described as "
                f"'{family.description}'; use the same kind and description, or another name"
            )
        family.holders += 1
        return family

    def series(self, family: SharedFamily, pairs: LabelPairs, bounds: tuple[float, ...]) -> Series:
        """Hold a series of a family. Raises InvalidArgumentError for other buckets than it has."""
        series = family.series.get(pairs)
        if series is None:
            series = family.series[pairs] = Series(family.name, family.kind, pairs, bounds)
        elif series.bounds != bounds:
            raise InvalidArgumentError(
                f"histogram '{family.name}' has the buckets {list(series.bounds)} for these labels, and was asked "
                f"for {list(bounds)}"
            )
        series.holders += 1
        return series

    def release(self, family: SharedFamily, series: Series, times: int) -> None:
        """Let a series go so many times; without holders it is removed."""
        series.holders -= times
        if series.holders <= 0:
            del family.series[series.labels]

    def release_family(self, family: SharedFamily) -> None:
        """Let a family go; without holders its name is free."""
        family.holders -= 1
        if family.holders <= 0:
            del self._families[family.name]
            self._lines = {line: owner for line, owner in self._lines.items() if owner != family.name}

    def reserve(self, names: Collection[str]) -> None:
        """Models cannot use these names from now on."""
        self._reserved |= frozenset(names)

    def collect(self) -> list[MetricFamily]:
        """Every family that has a series, as it stands."""
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


def line_names(name: str, kind: MetricKind) -> tuple[str, ...]:
    """The names under which a family's samples are written."""
    if kind == "histogram":
        return (name, f"{name}_bucket", f"{name}_count", f"{name}_sum")
    return (name, f"{name}_count", f"{name}_sum") if kind == "summary" else (name,)


def _gone(name: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"metric '{name}' cannot be used any more: the {what} has been deleted, or its model closed"
    )

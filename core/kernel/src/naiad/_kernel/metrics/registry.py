"""The metrics that models make for themselves: shared by name across a server, and gone with the last who made them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Literal

from naiad._kernel.metrics.given import (
    checked_bounds,
    checked_description,
    checked_labels,
    checked_name,
    checked_number,
)
from naiad._kernel.metrics.series import MetricStore, Series, SharedFamily
from naiad._kernel.metrics.snapshots import MetricFamily
from naiad.errors import InvalidArgumentError, UnsupportedError


class MetricRegistry:
    """Where one model version makes its metrics. Every method here, and of what it makes, is for any thread.

    The registries of a server share their families: models that count under the same name and labels count together,
    and a series is there until everybody who made it has closed it. The server closes a model's registry when it has
    closed the model.
    """

    def __init__(self, store: MetricStore | None = None) -> None:
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
        store: MetricStore,
        shared: SharedFamily,
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

    def _let_go(self, series: Series) -> None:
        with self._store.lock:
            if not self.closed:
                self._held[series] -= 1
                if not self._held[series]:
                    del self._held[series]  # another of these labels may be made anew, by somebody else
                self._store.release(self._shared, series, 1)


class Metric:
    """A hold on one series. Raises InvalidArgumentError after it, its family or its model was closed."""

    __slots__ = ("_closed", "_family", "_lock", "_series")

    def __init__(self, family: Family, store: MetricStore, series: Series) -> None:
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

    def _open(self, what: str, *kinds: str) -> Series:
        series = self._series
        if self._closed or self._family.closed:
            raise _gone(series.name, "family" if self._family.closed else "metric")
        if series.kind not in kinds:
            raise UnsupportedError(
                f"'{series.name}' is a {series.kind}, which has no '{what}'; a {' or '.join(kinds)} has"
            )
        return series


def _gone(name: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"metric '{name}' cannot be used any more: the {what} has been deleted, or its model closed"
    )

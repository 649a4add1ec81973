"""The series behind metrics that models make: counted by how many hold them, so that the last one out removes them."""

import threading
from collections.abc import Collection

from naiad._kernel.metrics.snapshots import Distribution, LabelPairs, MetricFamily, MetricKind, Sample
from naiad.errors import InvalidArgumentError


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
    """All series of one name, whoever made them."""

    __slots__ = ("description", "holders", "kind", "name", "series")

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        self.name = name
        self.description = description
        self.kind = kind
        self.series: dict[LabelPairs, Series] = {}
        self.holders = 0


class MetricStore:
    """The families of all models of a server; whoever calls a method or touches a value has `lock`.

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
        found = self._families.get(name)
        if found is None:
            self._claim(name, kind)
            found = self._families[name] = SharedFamily(name, description, kind)
        elif found.kind != kind or found.description != description:
            raise InvalidArgumentError(
                f"metric family '{name}' is there already, as a {found.kind} described as "
                f"'{found.description}'; use the same kind and description, or another name"
            )
        found.holders += 1
        return found

    def series(self, family: SharedFamily, pairs: LabelPairs, bounds: tuple[float, ...]) -> Series:
        """Hold a series of a family. Raises InvalidArgumentError for other buckets than it has."""
        found = family.series.get(pairs)
        if found is None:
            found = family.series[pairs] = Series(family.name, family.kind, pairs, bounds)
        elif found.bounds != bounds:
            raise InvalidArgumentError(
                f"histogram '{family.name}' has the buckets {list(found.bounds)} for these labels, and was asked "
                f"for {list(bounds)}"
            )
        found.holders += 1
        return found

    def release(self, family: SharedFamily, series: Series, times: int) -> None:
        """Let a series go so many times; with nobody left to hold it, it is gone."""
        series.holders -= times
        if series.holders <= 0:
            del family.series[series.labels]

    def release_family(self, family: SharedFamily) -> None:
        """Let a family go; with nobody left to hold it, its name is free."""
        family.holders -= 1
        if family.holders <= 0:
            del self._families[family.name]
            self._lines = {line: owner for line, owner in self._lines.items() if owner != family.name}

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

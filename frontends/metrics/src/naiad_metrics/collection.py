"""Collection of samples by family, in the order of the page."""

from collections.abc import Iterable, Sequence

from naiad_kit.metrics import Distribution, LabelPairs, MetricFamily, Quantiles, Sample
from naiad_metrics.families import FAMILIES, FamilyText


class Collection:
    """Samples by family."""

    def __init__(self) -> None:
        self._samples: dict[str, list[Sample]] = {family.name: [] for family in FAMILIES}

    def add(self, family: FamilyText, labels: LabelPairs, value: float | Distribution | Quantiles | None) -> None:
        """One sample; None is a value that is not known, and is left out."""
        if value is not None:
            self._samples[family.name].append(Sample(labels, value))

    def add_all(
        self,
        families: Iterable[FamilyText],
        labels: LabelPairs,
        values: Sequence[float | Distribution | Quantiles | None],
    ) -> None:
        """One sample for each of the families."""
        for family, value in zip(families, values, strict=True):
            self.add(family, labels, value)

    def families(self) -> list[MetricFamily]:
        """Every family that has a sample."""
        pairs = ((family, self._samples[family.name]) for family in FAMILIES)
        return [MetricFamily(family.name, family.help, family.kind, samples) for family, samples in pairs if samples]

"""Writer of Prometheus' text exposition format, version 0.0.4."""

import math
from collections.abc import Iterable, Iterator

from naiad_kit.metrics import Distribution, MetricFamily, Quantiles, Sample

_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_LABEL = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def pieces(families: Iterable[MetricFamily]) -> Iterator[str]:
    """The text in pieces of complete lines: the header of each family, and the lines of each of its samples."""
    written: dict[tuple[tuple[str, str], ...], str] = {}
    for family in families:
        name = family.name
        yield f"# HELP {name} {family.help.translate(_HELP)}\n# TYPE {name} {family.kind}\n"
        for sample in family.samples:
            labels = written.get(sample.labels)
            if labels is None:
                labels = written[sample.labels] = _labels(sample)
            yield _lines(name, labels, sample.value)


def _labels(sample: Sample) -> str:
    """The labels of a sample in the order of their names, as Triton writes them; `le` and `quantile` come last."""
    return ",".join(f'{name}="{value.translate(_LABEL)}"' for name, value in sorted(sample.labels))


def _lines(name: str, labels: str, value: float | Distribution | Quantiles) -> str:
    braces = f"{{{labels}}}" if labels else ""
    if isinstance(value, Distribution):
        return _histogram(name, labels, braces, value)
    if isinstance(value, Quantiles):
        more = f"{labels}," if labels else ""
        lines = [f'{name}{{{more}quantile="{_number(at)}"}} {_number(quantile)}' for at, quantile in value.values]
        return "\n".join([*lines, f"{name}_sum{braces} {_number(value.sum)}", f"{name}_count{braces} {value.count}\n"])
    return f"{name}{braces} {_number(value)}\n"


def _histogram(name: str, labels: str, braces: str, value: Distribution) -> str:
    """The lines of a histogram: buckets are cumulative, and the last one has everything."""
    start = f"{name}_bucket{{{labels}," if labels else f"{name}_bucket{{"
    lines, so_far = [], 0
    for bound, count in zip(value.bounds, value.counts, strict=False):
        so_far += count
        lines.append(f'{start}le="{_number(bound)}"}} {so_far}')
    so_far += value.counts[-1]
    lines.append(f'{start}le="+Inf"}} {so_far}')
    return "\n".join([*lines, f"{name}_sum{braces} {_number(value.sum)}", f"{name}_count{braces} {so_far}\n"])


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)

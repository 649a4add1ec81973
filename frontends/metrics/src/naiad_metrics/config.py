"""Configuration of metrics: the options that select what is counted and collected."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from naiad.options import Option, boolean

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """What is counted and collected.

    `enabled` False stops everything that only metrics need; the statistics extension counts on. `counter_latencies`,
    `summary_latencies` and `histogram_latencies` are which forms of Triton's latencies there are. `quantiles` are
    those of summaries.
    """

    enabled: bool = True
    cpu: bool = True
    gpu: bool = True
    interval: float = 2.0
    counter_latencies: bool = True
    summary_latencies: bool = False
    histogram_latencies: bool = False
    quantiles: tuple[float, ...] = QUANTILES

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "MetricsConfig":
        """What the options say; a later `--metrics-config` replaces an earlier one."""
        latencies = {key: value for setting in settings["metrics-config"] for key, value in setting}
        return cls(
            enabled=settings["allow-metrics"],
            cpu=settings["allow-cpu-metrics"],
            gpu=settings["allow-gpu-metrics"],
            interval=settings["metrics-interval-ms"] / 1000,
            **latencies,
        )


def _setting(text: str) -> tuple[tuple[str, Any], ...]:
    """A setting of MetricsConfig by name. Triton allows a name and a comma before it, which mean nothing."""
    name, comma, rest = text.partition(",")
    key, equals, value = (rest if comma and "=" not in name else text).partition("=")
    if key == "summary_quantiles":
        return (("quantiles", _quantiles(value)),)
    if not equals or key not in _SWITCHES:
        known = ", ".join(f"{switch}=true" for switch in _SWITCHES)
        raise ValueError(f"'{text}' is none of {known} and summary_quantiles=0.5:0.05,0.9:0.01")
    return ((key, boolean(value)),)


_SWITCHES = [field.name for field in fields(MetricsConfig) if field.name.endswith("_latencies")]


def _quantiles(text: str) -> tuple[float, ...]:
    """The quantiles of `0.5:0.05,0.9:0.01`. The errors are read and not needed: our summaries keep every rank."""
    pairs = [pair.split(":") for pair in text.strip("\"'").split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"'{text}' must be pairs of a quantile and its error, as 0.5:0.05,0.9:0.01")
    numbers = [(float(quantile), float(error)) for quantile, error in pairs]
    if not all(0 <= number <= 1 for pair in numbers for number in pair):
        raise ValueError(f"'{text}' has a number that is not between 0 and 1")
    return tuple(sorted({quantile for quantile, _ in numbers}))


def _milliseconds(text: str) -> float:
    """A finite time of more than 0 ms."""
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError(f"'{text}' is not a time in milliseconds; write a number greater than 0")
    return value


METRICS_OPTIONS: tuple[Option, ...] = (
    Option("allow-metrics", True, "keep metrics, and serve them", boolean),
    Option("allow-gpu-metrics", True, "have metrics of the GPUs", boolean),
    Option("allow-cpu-metrics", True, "have metrics of the processors and the memory", boolean),
    Option("metrics-interval-ms", 2000, "the shortest time between two looks at the machine", _milliseconds, "MS"),
    Option(
        "metrics-config",
        (),
        "counter_latencies, summary_latencies or histogram_latencies=true or false, or "
        "summary_quantiles=0.5:0.05,0.9:0.01; may be given several times",
        _setting,
        metavar="KEY=VALUE",
        repeatable=True,
    ),
)
"""Every option of what is counted and collected."""

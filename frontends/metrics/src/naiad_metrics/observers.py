"""Latency observers of model versions, chosen by options and the model's configuration."""

import math
from collections.abc import Mapping, Sequence
from time import monotonic

from naiad_config import ModelConfig
from naiad_config.mistakes import nearest
from naiad_metrics.config import MetricsConfig
from naiad_metrics.families import FIRST_RESPONSE, LATENCY_HISTOGRAMS
from naiad_metrics.latencies import BOUNDS, FIRST_RESPONSE_BOUNDS, Latencies, LatencyPlan
from naiad_metrics.sliding import SlidingQuantiles


class Durations:
    """The durations of one thing over the last minute: a `naiad.metrics.DurationObserver`."""

    __slots__ = ("_sliding",)

    def __init__(self) -> None:
        self._sliding = SlidingQuantiles(1)

    def add(self, nanoseconds: int) -> None:
        """Add one duration."""
        self._sliding.add_each(monotonic(), (nanoseconds,))

    def quantiles(self, quantiles: Sequence[float]) -> list[float]:
        """The duration in nanoseconds at each of the quantiles."""
        (values,) = self._sliding.values(monotonic(), quantiles)
        return values


class LatencyObserver:
    """Makes the observers of one model version: a `naiad.metrics.VersionObserver`."""

    __slots__ = ("_plan",)

    def __init__(self, plan: LatencyPlan) -> None:
        self._plan = plan

    def executions(self) -> Latencies:
        """The distributions of the latencies on one device."""
        return Latencies(self._plan)

    def durations(self) -> Durations | None:
        """Durations over the last minute, None without `summary_latencies`."""
        return Durations() if self._plan.summaries else None


def latency_plan(config: ModelConfig, metrics: MetricsConfig) -> LatencyPlan | None:
    """The plan for a model, None where metrics are switched off.

    `model_metrics` of its configuration may set the buckets of any histogram of latencies.
    """
    if not metrics.enabled:
        return None
    buckets = _buckets(config)
    first = buckets.get(FIRST_RESPONSE.name, FIRST_RESPONSE_BOUNDS)
    return LatencyPlan(
        bounds=tuple(buckets.get(family.name, BOUNDS) for family in LATENCY_HISTOGRAMS),
        first_response=first if metrics.histogram_latencies else None,
        summaries=metrics.summary_latencies,
    )


def family_problems(config: ModelConfig) -> list[str]:
    """The entries of `model_metrics` without an effect: there is no such metric, or its buckets are fixed."""
    known = [family.name for family in (FIRST_RESPONSE, *LATENCY_HISTOGRAMS)]
    problems = []
    for family in _buckets(config):
        if family not in known:
            near = nearest(family, known)
            hint = f"did you mean '{near}'?" if near else f"those of {', '.join(known)} can be set"
            problems.append(f"model '{config.name}' sets the buckets of '{family}' in vain: {hint}")
    return problems


def _buckets(config: ModelConfig) -> Mapping[str, Sequence[float]]:
    """The buckets that the configuration sets, by family."""
    controls = config.model_metrics.metric_control if config.model_metrics is not None else ()
    buckets = {}
    for control in controls:
        if control.metric_identifier is not None and control.histogram_options is not None:
            bounds = tuple(sorted({bound for bound in control.histogram_options.buckets if math.isfinite(bound)}))
            if bounds:
                buckets[control.metric_identifier.family] = bounds
    return buckets

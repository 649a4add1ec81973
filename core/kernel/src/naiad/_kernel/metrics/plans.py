"""Which distributions of latencies are kept of a model: what the server's options and the model's configuration say."""

import math
from collections.abc import Mapping, Sequence

from naiad._kernel.metrics.families import FIRST_RESPONSE, LATENCY_HISTOGRAMS
from naiad._kernel.metrics.latencies import BOUNDS, FIRST_RESPONSE_BOUNDS, LatencyPlan
from naiad._kernel.metrics.options import MetricsConfig
from naiad_config import ModelConfig
from naiad_config.mistakes import nearest


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


def told_of_families(config: ModelConfig) -> list[str]:
    """What to say of `model_metrics` without an effect: there is no such metric, or its buckets are fixed."""
    known = [family.name for family in (FIRST_RESPONSE, *LATENCY_HISTOGRAMS)]
    told = []
    for family in _buckets(config):
        if family not in known:
            near = nearest(family, known)
            hint = f"did you mean '{near}'?" if near else f"those of {', '.join(known)} can be set"
            told.append(f"model '{config.name}' sets the buckets of '{family}' in vain: {hint}")
    return told


def _buckets(config: ModelConfig) -> Mapping[str, Sequence[float]]:
    """The buckets that the configuration sets, by family."""
    controls = config.model_metrics.metric_control if config.model_metrics is not None else ()
    found = {}
    for control in controls:
        if control.metric_identifier is not None and control.histogram_options is not None:
            bounds = tuple(sorted({bound for bound in control.histogram_options.buckets if math.isfinite(bound)}))
            if bounds:
                found[control.metric_identifier.family] = bounds
    return found

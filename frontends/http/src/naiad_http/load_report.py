"""Load report in a response header, for load balancers: ORCA (Open Request Cost Aggregation).

The numbers are TensorRT-LLM's gauges of its key-value cache, in blocks.
"""

import json
from collections.abc import Iterable, Mapping

from naiad_http.statuses import Headers
from naiad_kit.metrics import MetricFamily

_GAUGES = "nv_trt_llm_kv_cache_block_metrics"
_TYPE = "kv_cache_block_type"


def load_report(form: str, model: str, families: Iterable[MetricFamily]) -> Headers:
    """The header `endpoint-load-metrics` as `text` or `json`; no header for any other form, or without gauges.

    It reports the gauges of that model, or of the last model that has them.
    """
    blocks = _blocks(model, families)
    if form not in ("text", "json") or not {"used", "max", "tokens_per"} <= blocks.keys():
        return ()
    most = blocks["max"]
    utilization = blocks["used"] / most if most else 0.0
    capacity = int(most * blocks["tokens_per"])
    if form == "text":
        report = f"TEXT named_metrics.kv_cache_utilization={utilization:f}, named_metrics.max_token_capacity={capacity}"
    else:
        named = {"kv_cache_utilization": utilization, "max_token_capacity": capacity}
        report = "JSON " + json.dumps({"named_metrics": named}, separators=(",", ":"))
    return (("endpoint-load-metrics", report),)


def _blocks(model: str, families: Iterable[MetricFamily]) -> Mapping[str, float]:
    """The gauges by type: those of the model, otherwise of the last model that has gauges."""
    gauges: dict[str, dict[str, float]] = {}
    for family in families:
        if family.name == _GAUGES:
            for sample in family.samples:
                labels = dict(sample.labels)
                if isinstance(sample.value, int | float):
                    gauges.setdefault(labels.get("model", ""), {})[labels.get(_TYPE, "")] = sample.value
    return gauges.get(model) or next(reversed(gauges.values()), {})

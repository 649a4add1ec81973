"""How loaded an endpoint is, in a response header: ORCA, the open request cost aggregation that load balancers read.

The numbers come from the gauges that TensorRT-LLM keeps of its cache of keys and values, in blocks.
"""

import json
from collections.abc import Iterable, Mapping

from naiad.metrics import MetricFamily
from naiad_http.statuses import Headers

_GAUGES = "nv_trt_llm_kv_cache_block_metrics"
_TYPE = "kv_cache_block_type"


def load_report(wanted: str, model: str, families: Iterable[MetricFamily]) -> Headers:
    """The header `endpoint-load-metrics` in the form that the caller wants, `text` or `json`.

    It tells of that model, or of the one that has the gauges; there is none for another form or without gauges.
    """
    blocks = _blocks(model, families)
    if wanted not in ("text", "json") or not {"used", "max", "tokens_per"} <= blocks.keys():
        return ()
    most = blocks["max"]
    utilization = blocks["used"] / most if most else 0.0
    capacity = int(most * blocks["tokens_per"])
    if wanted == "text":
        told = f"TEXT named_metrics.kv_cache_utilization={utilization:f}, named_metrics.max_token_capacity={capacity}"
    else:
        named = {"kv_cache_utilization": utilization, "max_token_capacity": capacity}
        told = "JSON " + json.dumps({"named_metrics": named}, separators=(",", ":"))
    return (("endpoint-load-metrics", told),)


def _blocks(model: str, families: Iterable[MetricFamily]) -> Mapping[str, float]:
    """The gauges by their type: those of the model, else of the model that was told last."""
    found: dict[str, dict[str, float]] = {}
    for family in families:
        if family.name == _GAUGES:
            for sample in family.samples:
                labels = dict(sample.labels)
                if isinstance(sample.value, int | float):
                    found.setdefault(labels.get("model", ""), {})[labels.get(_TYPE, "")] = sample.value
    return found.get(model) or next(reversed(found.values()), {})

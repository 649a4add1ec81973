"""The header that tells load balancers how loaded an endpoint is."""

import json

import pytest

from naiad_http.load_report import load_report
from naiad_kit.metrics import MetricFamily, Sample


def gauges(model="m", **blocks):
    samples = [Sample((("kv_cache_block_type", kind), ("model", model)), value) for kind, value in blocks.items()]
    return MetricFamily("nv_trt_llm_kv_cache_block_metrics", "Blocks", "gauge", samples)


OTHER = MetricFamily("nv_cpu_utilization", "CPU", "gauge", [Sample((), 0.5)])
LOADED = gauges(used=1, max=4, tokens_per=64, free=3)


def test_as_text():
    assert load_report("text", "m", [OTHER, LOADED]) == (
        (
            "endpoint-load-metrics",
            "TEXT named_metrics.kv_cache_utilization=0.250000, named_metrics.max_token_capacity=256",
        ),
    )


def test_as_json():
    ((name, value),) = load_report("json", "m", [OTHER, LOADED])

    assert name == "endpoint-load-metrics"
    assert value.startswith("JSON {")
    assert json.loads(value.removeprefix("JSON ")) == {
        "named_metrics": {"kv_cache_utilization": 0.25, "max_token_capacity": 256}
    }


def test_the_model_that_was_asked_counts_and_else_the_one_that_has_the_gauges():
    other = gauges("other", used=3, max=4, tokens_per=64)

    assert "utilization=0.25" in load_report("text", "m", [LOADED, other])[0][1]
    assert "utilization=0.75" in load_report("text", "other", [other, LOADED])[0][1]
    assert "utilization=0.75" in load_report("text", "an ensemble", [other])[0][1]


def test_a_cache_without_blocks_is_not_used():
    assert "utilization=0.00" in load_report("text", "m", [gauges(used=0, max=0, tokens_per=64)])[0][1]


@pytest.mark.parametrize("expected", ["", "xml", "TEXT"])
def test_another_form_gets_no_header(expected):
    assert load_report(expected, "m", [LOADED]) == ()


@pytest.mark.parametrize("families", [[], [OTHER], [gauges(used=1, max=4)]])
def test_without_the_gauges_there_is_no_header(families):
    assert load_report("text", "m", families) == ()

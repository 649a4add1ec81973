"""The options of the metrics, and the plan that they and a model's configuration make."""

from dataclasses import fields, replace

import pytest

from naiad.options import Settings
from naiad_config import ModelConfig
from naiad_config.text import read_text
from naiad_metrics.config import METRICS_OPTIONS, QUANTILES, MetricsConfig
from naiad_metrics.families import FIRST_RESPONSE, LATENCY_HISTOGRAMS
from naiad_metrics.latencies import BOUNDS, FIRST_RESPONSE_BOUNDS
from naiad_metrics.observers import family_problems, latency_plan

(CONFIG,) = (option for option in METRICS_OPTIONS if option.name == "metrics-config")


def config(*words: str, **values: object) -> MetricsConfig:
    fields = {"metrics-config": tuple(map(CONFIG.type, words))} if words else {}
    return MetricsConfig.of(Settings(METRICS_OPTIONS, {**fields, **values}))


def buckets(family: str, *bounds: float) -> ModelConfig:
    listed = ", ".join(map(str, bounds))
    return read_text(
        f'model_metrics {{ metric_control {{ metric_identifier {{ family: "{family}" }} '
        f"histogram_options {{ buckets: [{listed}] }} }} }}"
    ).config


def test_without_a_word_everything_is_as_triton_has_it() -> None:
    assert config() == MetricsConfig()
    assert [field.name for field in fields(MetricsConfig) if field.name.endswith("_latencies")] == [
        "counter_latencies",
        "summary_latencies",
        "histogram_latencies",
    ]


def test_settings_add_up_and_the_later_one_holds() -> None:
    result = config("summary_latencies=true", "counter_latencies=false", "anyone,counter_latencies=true")

    assert (result.summary_latencies, result.counter_latencies, result.histogram_latencies) == (True, True, False)


def test_switches_and_the_interval_have_options_of_their_own() -> None:
    result = config(
        **{"allow-metrics": False, "allow-cpu-metrics": False, "allow-gpu-metrics": False, "metrics-interval-ms": 500}
    )

    assert (result.enabled, result.cpu, result.gpu, result.interval) == (False, False, False, 0.5)


@pytest.mark.parametrize("text", ["0.5:0.05,0.999:0.001", '"0.999:0.001,0.5:0.05"', "0.5:0.05,0.999:0.001,0.5:0.1"])
def test_quantiles_are_read_with_their_errors(text: str) -> None:
    assert config().quantiles == QUANTILES
    assert config(f"summary_quantiles={text}").quantiles == (0.5, 0.999)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latencies=true", "is none of counter_latencies=true"),
        ("summary_latencies", "is none of"),
        ("summary_latencies=perhaps", "'perhaps'"),
        ("summary_quantiles=0.5", "must be pairs"),
        ("summary_quantiles=1.5:0.1", "not between 0 and 1"),
        ("summary_quantiles=nan:0.1", "not between 0 and 1"),
        ("summary_quantiles=a:b", "could not convert"),
    ],
)
def test_settings_that_are_invalid_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CONFIG.type(text)


def test_histograms_are_always_kept_and_everything_else_on_demand() -> None:
    plain = latency_plan(ModelConfig(), MetricsConfig())
    plan = latency_plan(ModelConfig(), MetricsConfig(summary_latencies=True, histogram_latencies=True))

    assert plain is not None
    assert plan is not None
    assert (plain.bounds, plain.first_response, plain.summaries) == ((BOUNDS,) * 5, None, False)
    assert (plan.bounds, plan.first_response, plan.summaries) == ((BOUNDS,) * 5, FIRST_RESPONSE_BOUNDS, True)


def test_switched_off_metrics_keep_no_distribution() -> None:
    everything = MetricsConfig(enabled=False, summary_latencies=True, histogram_latencies=True)

    assert latency_plan(ModelConfig(), everything) is None


def test_a_model_sets_the_buckets_of_its_histograms() -> None:
    metrics = MetricsConfig(histogram_latencies=True)

    first = latency_plan(buckets(FIRST_RESPONSE.name, 20, 10, 20), metrics)
    request = latency_plan(buckets(LATENCY_HISTOGRAMS[0].name, 1.5), metrics)

    assert first is not None
    assert request is not None
    assert (first.first_response, first.bounds) == ((10, 20), (BOUNDS,) * 5)
    assert request.bounds == ((1.5,), *(BOUNDS,) * 4)


def test_buckets_of_a_metric_that_has_none_to_set_are_reported_with_the_nearest_name() -> None:
    misspelt = buckets("nv_inference_first_respons_histogram_ms", 10)

    assert family_problems(ModelConfig()) == []
    assert family_problems(buckets(FIRST_RESPONSE.name, 10)) == []
    (report,) = family_problems(replace(misspelt, name="m"))
    assert report == (
        "model 'm' sets the buckets of 'nv_inference_first_respons_histogram_ms' in vain: did you mean "
        "'nv_inference_first_response_histogram_ms'?"
    )
    (unlike,) = family_problems(buckets("batch", 1))
    assert "those of nv_inference_first_response_histogram_ms, naiad_request_duration_seconds" in unlike

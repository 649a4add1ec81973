"""The metrics that models make for themselves."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_kit.metrics import Distribution, MetricFamily, Sample
from naiad_kit.model_metrics import MetricRegistry, MetricStore, Series


def values(registry: MetricRegistry) -> dict[str, dict[tuple[tuple[str, str], ...], object]]:
    return {family.name: {each.labels: each.value for each in family.samples} for family in registry.collect()}


def test_a_counter_goes_up_and_has_its_labels() -> None:
    registry = MetricRegistry()
    cats = registry.family("cats", "Cats seen", "counter").metric({"colour": "black", "age": "2"})

    cats.increment()
    cats.increment(2.5)

    assert cats.value() == 3.5
    assert registry.collect() == [
        MetricFamily("cats", "Cats seen", "counter", [Sample((("age", "2"), ("colour", "black")), 3.5)])
    ]


@pytest.mark.parametrize("step", [-1.0, math.nan])
def test_a_counter_never_goes_down(step: float) -> None:
    counter = MetricRegistry().family("cats", "", "counter").metric()

    with pytest.raises(InvalidArgumentError, match="can only go up"):
        counter.increment(step)

    assert counter.value() == 0


def test_a_gauge_goes_up_and_down_and_can_be_set() -> None:
    gauge = MetricRegistry().family("load", "", "gauge").metric()

    gauge.set(5)
    gauge.increment(-7)

    assert gauge.value() == -2


def test_a_histogram_counts_an_observation_in_the_bucket_whose_bound_it_does_not_pass() -> None:
    registry = MetricRegistry()
    histogram = registry.family("sizes", "", "histogram").metric(buckets=[1, 10])

    for size in (0.5, 1, 2, 10, 11):
        histogram.observe(size)

    assert values(registry) == {"sizes": {(): Distribution((1.0, 10.0), (2, 2, 1), 24.5)}}


def test_a_family_may_name_the_buckets_of_all_its_histograms() -> None:
    registry = MetricRegistry()
    registry.family("sizes", "", "histogram", buckets=[4]).metric({"of": "cats"}).observe(4)

    assert values(registry) == {"sizes": {(("of", "cats"),): Distribution((4.0,), (1, 0), 4.0)}}


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("counter", lambda metric: metric.set(1)),
        ("counter", lambda metric: metric.observe(1)),
        ("gauge", lambda metric: metric.observe(1)),
        ("histogram", lambda metric: metric.increment(1)),
        ("histogram", lambda metric: metric.set(1)),
        ("histogram", lambda metric: metric.value()),
    ],
)
def test_what_a_kind_of_metric_cannot_do_is_refused(kind: str, operation: object) -> None:
    metric = MetricRegistry().family("m", "", kind, [1] if kind == "histogram" else []).metric()

    with pytest.raises(UnsupportedError, match=f"'m' is a {kind}, which has no '"):
        operation(metric)


@pytest.mark.parametrize(
    ("kind", "buckets", "complaint"),
    [
        ("histogram", None, "has no buckets"),
        ("histogram", [2, 1], "must be finite and ascend"),
        ("histogram", [1, 1], "must be finite and ascend"),
        ("histogram", [1, math.inf], "must be finite and ascend"),
        ("gauge", [1], "is a gauge, which has no buckets"),
    ],
)
def test_buckets_that_are_invalid_are_refused(kind: str, buckets: list[float] | None, complaint: str) -> None:
    family = MetricRegistry().family("m", "", kind)

    with pytest.raises(InvalidArgumentError, match=complaint):
        family.metric(buckets=buckets)


def test_the_same_name_is_the_same_family_and_cannot_be_another() -> None:
    registry = MetricRegistry()
    registry.family("cats", "Cats seen", "counter").metric().increment()

    registry.family("cats", "Cats seen", "counter").metric().increment()

    assert values(registry) == {"cats": {(): 2.0}}
    with pytest.raises(InvalidArgumentError, match="there already, as a counter described as 'Cats seen'"):
        registry.family("cats", "Cats seen", "gauge")


def test_the_first_description_of_a_family_stays() -> None:
    registry = MetricRegistry()
    registry.family("cats", "Cats seen", "counter").metric().increment()

    registry.family("cats", "Cats heard", "counter").metric().increment()

    (family,) = registry.collect()
    assert (family.help, family.samples[0].value) == ("Cats seen", 2.0)


def test_a_histogram_with_an_empty_list_of_buckets_counts_everything_in_one() -> None:
    registry = MetricRegistry()

    registry.family("sizes", "", "histogram").metric(buckets=[]).observe(7)

    assert values(registry) == {"sizes": {(): Distribution((), (1,), 7.0)}}


def test_the_same_labels_cannot_have_other_buckets() -> None:
    family = MetricRegistry().family("sizes", "", "histogram")
    family.metric(buckets=[1])

    with pytest.raises(InvalidArgumentError, match=r"has the buckets \[1.0\]"):
        family.metric(buckets=[2])


@pytest.mark.parametrize("name", ["", "1st", "a-b", "ü", "a b"])
def test_names_that_prometheus_does_not_allow_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be the name of a metric"):
        MetricRegistry().family(name, "", "gauge")


@pytest.mark.parametrize("label", ["", "1st", "a-b", "__own", "le", "quantile", 7])
def test_labels_that_prometheus_does_not_allow_are_refused(label: str) -> None:
    family = MetricRegistry().family("m", "", "gauge")

    with pytest.raises(InvalidArgumentError, match="cannot have the label"):
        family.metric({label: "x"})


def test_the_value_of_a_label_must_be_text() -> None:
    family = MetricRegistry().family("m", "", "gauge")

    with pytest.raises(InvalidArgumentError, match="label 'a' of metric 'm' is 1"):
        family.metric({"a": 1})


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be a 'summary'"):
        MetricRegistry().family("m", "", "summary")


def test_no_line_of_the_text_can_be_written_by_two_families() -> None:
    store = MetricStore(["nv_inference_count"])
    registry = MetricRegistry(store)
    registry.family("sizes", "", "histogram")

    with pytest.raises(InvalidArgumentError, match="needs the name 'sizes_count', which sizes uses"):
        registry.family("sizes_count", "", "counter")
    with pytest.raises(InvalidArgumentError, match="'nv_inference_count', which the server uses"):
        registry.family("nv_inference_count", "", "counter")
    with pytest.raises(InvalidArgumentError, match="'nv_inference_count', which the server uses"):
        registry.family("nv_inference", "", "histogram")


def test_registries_of_one_server_count_together_until_the_last_is_closed() -> None:
    store = MetricStore()
    one, other = MetricRegistry(store), MetricRegistry(store)
    for registry in (one, other):
        registry.family("cats", "", "counter").metric().increment()
    one.family("dogs", "", "counter").metric({"of": "one"})
    other.family("dogs", "", "counter").metric({"of": "other"})

    one.close()

    assert values(other) == {"cats": {(): 2.0}, "dogs": {(("of", "other"),): 0.0}}
    other.close()
    assert values(other) == {}


def test_a_metric_that_is_closed_is_gone_while_its_family_lives_on() -> None:
    registry = MetricRegistry()
    family = registry.family("cats", "", "counter")
    metric, same, other = family.metric(), family.metric(), family.metric({"a": "b"})

    metric.close()
    metric.close()
    assert set(values(registry)["cats"]) == {(), (("a", "b"),)}
    same.close()
    assert set(values(registry)["cats"]) == {(("a", "b"),)}

    other.increment()
    with pytest.raises(InvalidArgumentError, match="'cats' cannot be used any more: the metric has been deleted"):
        metric.increment()


def test_a_family_that_is_closed_leaves_alone_what_others_made_after_its_own_metric_was_closed() -> None:
    family, other = (MetricRegistry(store).family("jobs", "Jobs", "counter") for store in [MetricStore()] * 2)
    family.metric({"a": "1"}).close()
    kept = other.metric({"a": "1"})

    family.close()

    kept.increment(2)
    assert kept.value() == 2
    assert other.metric({"a": "1"}).value() == 2


def test_a_family_that_is_closed_takes_its_metrics_and_its_name_with_it() -> None:
    registry = MetricRegistry()
    family = registry.family("cats", "", "counter")
    metric = family.metric()

    family.close()
    family.close()
    metric.close()

    assert registry.collect() == []
    with pytest.raises(InvalidArgumentError, match="the family has been deleted"):
        metric.increment()
    with pytest.raises(InvalidArgumentError, match="the family has been deleted"):
        family.metric()
    registry.family("cats", "now something else", "gauge")
    registry.family("cats_count", "", "gauge")


def test_a_registry_that_was_closed_can_be_used_anew() -> None:
    registry = MetricRegistry()
    registry.family("cats", "", "counter").metric().increment()

    registry.close()
    registry.family("cats", "", "counter").metric()

    assert values(registry) == {"cats": {(): 0.0}}


def test_families_may_be_closed_while_metrics_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = MetricRegistry()
    families = [registry.family(name, "", "counter") for name in ("a", "b", "c")]
    for family in families:
        family.metric()
        family.metric({"one": "more"})
    sample = Series.sample

    def sample_and_close(series: Series) -> Sample:
        families[1].close()
        return sample(series)

    monkeypatch.setattr(Series, "sample", sample_and_close)

    assert [family.name for family in registry.collect()] == ["a", "c"]


def test_threads_lose_no_increment() -> None:
    registry = MetricRegistry()
    counter = registry.family("cats", "", "counter").metric()

    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(lambda: [counter.increment() for _ in range(2000)])

    assert counter.value() == 8000

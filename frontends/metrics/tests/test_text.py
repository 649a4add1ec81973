"""Metrics as text, with the parser of Prometheus' own client library as the oracle."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parse

from naiad_kit.metrics import Distribution, MetricFamily, Quantiles, Sample
from naiad_metrics.text import pieces


def written(*families):
    return "".join(pieces(families))


def test_counters_and_gauges_are_one_line_a_sample():
    cats = MetricFamily(
        "cats", "Cats so far", "counter", [Sample((("colour", "black"), ("age", "2")), 3), Sample((), 0.5)]
    )

    assert written(cats) == '# HELP cats Cats so far\n# TYPE cats counter\ncats{age="2",colour="black"} 3\ncats 0.5\n'


def test_labels_are_in_the_order_of_their_names():
    one = Sample((("model", "m"), ("version", "1"), ("reason", "OTHER")), 0)
    two = Sample((("z", "1"), ("a", "2")), Distribution((1.0,), (0, 0), 0.0))

    text = written(MetricFamily("failed", "", "counter", [one]), MetricFamily("sizes", "", "histogram", [two]))

    assert 'failed{model="m",reason="OTHER",version="1"} 0' in text
    assert 'sizes_bucket{a="2",z="1",le="1"} 0' in text


def test_the_buckets_of_a_histogram_add_up():
    family = MetricFamily("s", "S", "histogram", [Sample((("m", "a"),), Distribution((0.0001, 1.0), (2, 3, 4), 7.25))])

    assert written(family) == (
        "# HELP s S\n# TYPE s histogram\n"
        's_bucket{m="a",le="0.0001"} 2\ns_bucket{m="a",le="1"} 5\ns_bucket{m="a",le="+Inf"} 9\n'
        's_sum{m="a"} 7.25\ns_count{m="a"} 9\n'
    )


def test_a_summary_has_its_quantiles_or_says_that_there_are_none():
    family = MetricFamily("s", "S", "summary", [Sample((), Quantiles(((0.5, 12.5), (0.999, math.nan)), 3, 40.0))])

    assert written(family) == (
        '# HELP s S\n# TYPE s summary\ns{quantile="0.5"} 12.5\ns{quantile="0.999"} NaN\ns_sum 40\ns_count 3\n'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (2**63, "9223372036854775808"),
        (1.0, "1"),
        (1e300, "1e+300"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_prometheus_reads_them(value, text):
    assert written(MetricFamily("n", "", "gauge", [Sample((), value)])).splitlines()[-1] == f"n {text}"


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"))
names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,9}", fullmatch=True).map(lambda name: f"x_{name}_y")
labels = st.dictionaries(st.from_regex(r"l[a-zA-Z0-9_]{0,9}", fullmatch=True), texts, max_size=3)
numbers = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)


@given(name=names, help_text=texts, pairs=labels, value=numbers)
def test_any_text_comes_through(name, help_text, pairs, value):
    family = MetricFamily(name, help_text, "gauge", [Sample(tuple(pairs.items()), value)])

    (read,) = parse(written(family))

    assert (read.name, read.type) == (name, "gauge")
    assert read.documentation.strip() == help_text.strip()
    assert [(sample.labels, sample.value) for sample in read.samples] == [(pairs, value)]


@given(
    pairs=labels.filter(lambda pairs: "le" not in pairs),
    counts=st.lists(st.integers(0, 10**12), min_size=4, max_size=4),
    total=st.floats(0, 1e12),
)
def test_any_histogram_comes_through(pairs, counts, total):
    value = Distribution((0.001, 0.5, 2.0), counts, total)

    (read,) = parse(written(MetricFamily("h", "H", "histogram", [Sample(tuple(pairs.items()), value)])))

    results = {(sample.name, sample.labels.get("le")): sample.value for sample in read.samples}
    assert results == {
        ("h_bucket", "0.001"): sum(counts[:1]),
        ("h_bucket", "0.5"): sum(counts[:2]),
        ("h_bucket", "2"): sum(counts[:3]),
        ("h_bucket", "+Inf"): sum(counts),
        ("h_sum", None): total,
        ("h_count", None): sum(counts),
    }

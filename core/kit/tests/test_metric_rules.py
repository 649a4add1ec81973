"""What models give for their metrics: anything that is a number or a text is taken, and nothing else gets through."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.metrics import Distribution, Sample
from naiad_kit.model_metrics import MetricRegistry

HALVES = [0.5, np.float16(0.5), np.float32(0.5), np.float64(0.5), np.array(0.5), Fraction(1, 2)]


@pytest.mark.parametrize("half", HALVES, ids=lambda half: type(half).__name__)
def test_any_kind_of_number_becomes_a_float(half: float) -> None:
    registry = MetricRegistry()

    registry.family("counter", "", "counter").metric().increment(half)
    registry.family("set", "", "gauge").metric().set(half)
    registry.family("added", "", "gauge").metric().increment(half)
    registry.family("observed", "", "histogram").metric(buckets=[1]).observe(half)

    *single, observed = (family.samples[0].value for family in registry.collect())
    assert [repr(value) for value in single] == ["0.5"] * 3
    assert repr(observed) == repr(Distribution((1.0,), (1, 0), 0.5))


@pytest.mark.parametrize(
    "value", ["1", b"1", None, 1j, [1], np.array([1.0, 2.0]), 10**400], ids=lambda value: repr(value)[:20]
)
def test_what_is_no_number_is_refused_and_counts_nothing(value: float) -> None:
    registry = MetricRegistry()
    counter = registry.family("counter", "", "counter").metric()
    gauge = registry.family("gauge", "", "gauge").metric()
    histogram = registry.family("histogram", "", "histogram").metric(buckets=[1])

    for count in (counter.increment, gauge.increment, gauge.set, histogram.observe):
        with pytest.raises(InvalidArgumentError, match="use a real number"):
            count(value)

    assert [family.samples for family in registry.collect()] == [
        [Sample((), 0.0)],
        [Sample((), 0.0)],
        [Sample((), Distribution((1.0,), (0, 0), 0.0))],
    ]


def test_what_is_no_number_lies_above_all_bounds() -> None:
    registry = MetricRegistry()
    histogram = registry.family("histogram", "", "histogram").metric(buckets=[1])

    histogram.observe(math.nan)

    (family,) = registry.collect()
    assert family.samples[0].value.counts == (0, 1)


def test_buckets_may_be_an_array() -> None:
    histogram = MetricRegistry().family("histogram", "", "histogram", buckets=np.array([1, 2]))

    assert histogram.metric(buckets=np.array([0.5, 4], np.float32)).close() is None


@pytest.mark.parametrize("buckets", [5, "12", [1, "2"], [[1]], None])
def test_buckets_that_are_no_numbers_are_refused(buckets: object) -> None:
    with pytest.raises(InvalidArgumentError, match="'histogram'"):
        MetricRegistry().family("histogram", "", "histogram", buckets=buckets)


@pytest.mark.parametrize("name", [3, None, b"name"])
def test_a_name_that_is_no_text_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(repr(name))):
        MetricRegistry().family(name, "", "gauge")


@pytest.mark.parametrize("description", [3, None, b"text", "\udcff"])
def test_a_description_that_cannot_be_written_is_refused(description: str) -> None:
    with pytest.raises(InvalidArgumentError, match="the description of metric 'm'"):
        MetricRegistry().family("m", description, "gauge")


@pytest.mark.parametrize("value", [1, None, b"text", "\udcff"])
def test_the_value_of_a_label_that_cannot_be_written_is_refused(value: str) -> None:
    family = MetricRegistry().family("m", "", "gauge")

    with pytest.raises(InvalidArgumentError, match="the values of labels are text"):
        family.metric({"a": value})


@pytest.mark.parametrize("labels", ["a", [("a", "b")], 3])
def test_labels_that_are_no_dictionary_are_refused(labels: object) -> None:
    family = MetricRegistry().family("m", "", "gauge")

    with pytest.raises(InvalidArgumentError, match="the labels of metric 'm'"):
        family.metric(labels)

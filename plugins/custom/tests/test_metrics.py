"""Metrics of a model's own: `context.metrics` of native models, `pb_utils.MetricFamily` of Triton-style ones."""

import gc

import numpy as np
import pytest

import triton_python_backend_utils as pb_utils
from naiad.backend import ModelContext
from naiad.errors import ModelNotReadyError
from naiad_custom import INT64, Array, model
from naiad_kit.metrics import MetricsApi
from naiad_testing import serve

INITIALIZE = """
    import numpy as np
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def initialize(self, args):
            Family = pb_utils.MetricFamily
            self.sizes = Family("sizes", "Sizes seen", Family.HISTOGRAM)
            self.things = Family("things", "Things seen", Family.COUNTER)
            self.levels = Family("level", "Where it stands", Family.GAUGE)
            self.count = self.things.Metric({"model": "m"})
            self.level = self.levels.Metric()
            self.size = self.sizes.Metric({"model": "m"}, buckets=[1, 10])

        def execute(self, requests):
            return [self.answer(int(request.inputs()[0].as_numpy()[0])) for request in requests]

        def answer(self, number):
            self.count.increment(number)
            self.level.set(number)
            self.level.increment(-0.5)
            self.size.observe(number)
            value = np.array([self.count.value() + self.level.value()])
            return pb_utils.InferenceResponse([pb_utils.Tensor("Y", value)])
"""

CONFIG = 'input { name: "X" data_type: TYPE_INT64 dims: 1 } output { name: "Y" data_type: TYPE_FP64 dims: 1 }'


def shown(client) -> dict:
    """The metrics of models, by name and labels."""
    families = client.call(lambda server: server.service(MetricsApi).collect())
    own = [family for family in families if not family.name.startswith("nv_")]
    return {(family.name, sample.labels): sample.value for family in own for sample in family.samples}


def test_a_triton_model_makes_metrics_of_every_kind(folder):
    folder.write(INITIALIZE, CONFIG)

    with serve(folder.path) as client:
        answers = [client.infer(X=[number])["Y"].item() for number in (2, 20)]
        result = shown(client)

    assert answers == [3.5, 41.5]
    assert result["things", (("model", "m"),)] == 22
    assert result["level", ()] == 19.5
    assert result["sizes", (("model", "m"),)].counts == (0, 1, 1)


def test_metrics_are_gone_with_their_model(folder):
    folder.write(INITIALIZE, CONFIG)

    with serve(folder.path) as client:
        before = {name for name, _ in shown(client)}
        client.wait_for(lambda server: server.unload("m"))
        client.wait_for(lambda server: server.load("m"))
        client.infer(X=[3])
        after = shown(client)["things", (("model", "m"),)]

    assert {"things", "level", "sizes"} <= before
    assert after == 3


@pytest.fixture
def metrics_of(folder, batch_of):
    """What a body of `execute` left in its global MADE."""

    def make(body: str) -> object:
        folder.write_triton(f"global MADE\n{body}\nreturn [pb_utils.InferenceResponse([])]", before="MADE = None")
        instance = folder.instance()
        instance.execute(batch_of({"X": [1]}))
        return instance._model.execute.__globals__["MADE"]

    return make


COUNTER = 'pb_utils.MetricFamily("c", "A counter", pb_utils.MetricFamily.COUNTER)'


def test_what_a_kind_does_not_have_is_refused(metrics_of):
    _, counter = metrics_of(f"family = {COUNTER}; MADE = family, family.Metric()")

    for wrong in (lambda: counter.increment(-1), lambda: counter.set(1), lambda: counter.observe(1)):
        with pytest.raises(pb_utils.TritonModelException, match="counter"):
            wrong()
    assert counter.value() == 0


HISTOGRAM = 'MADE = pb_utils.MetricFamily("h", "A histogram", pb_utils.MetricFamily.HISTOGRAM)'


def test_a_metric_whose_family_is_gone_cannot_be_used(metrics_of):
    counter = metrics_of(f"MADE = {COUNTER}.Metric()")

    for wrong in (lambda: counter.increment(1), lambda: counter.set(1), lambda: counter.value()):
        with pytest.raises(pb_utils.TritonModelException, match="deleted"):
            wrong()


@pytest.mark.parametrize("value", ["1", None, [1], b"1"])
def test_what_is_no_number_is_a_type_error(metrics_of, value):
    families = metrics_of(f"counters = {COUNTER}; {HISTOGRAM}, counters")
    histogram, counter = families[0].Metric(buckets=[1]), families[1].Metric()

    for wrong in (lambda: counter.increment(value), lambda: counter.set(value), lambda: histogram.observe(value)):
        with pytest.raises(TypeError, match="a metric takes a number"):
            wrong()


def test_a_histogram_may_have_an_empty_list_of_buckets(metrics_of, folder):
    family = metrics_of(HISTOGRAM)
    metric = family.Metric(buckets=[])

    metric.observe(5)

    (shown_family,) = folder.models[0]._context.metrics.collect()
    assert shown_family.samples[0].value.counts == (1,)


def test_a_histogram_needs_buckets(metrics_of):
    family = metrics_of(HISTOGRAM)

    with pytest.raises(pb_utils.TritonModelException, match="has no buckets"):
        family.Metric()


def test_a_name_means_one_thing(metrics_of):
    body = f"""
MADE = [{COUNTER}, pb_utils.MetricFamily(b"c", b"Another description", pb_utils.MetricFamily.COUNTER)]
try:
    pb_utils.MetricFamily("c", "A counter", pb_utils.MetricFamily.GAUGE)
except pb_utils.TritonModelException as error:
    MADE.append(str(error))
"""

    first, second, message = metrics_of(body)
    counted = first.Metric()
    counted.increment(2)

    assert second.Metric().value() == 2
    assert "metric family 'c' " in message


def test_what_is_not_referenced_is_gone(metrics_of, folder):
    round_trip = ["for _ in range(3):", f"    family = {COUNTER}", "    family.Metric().increment(1)", "    del family"]
    metrics_of("\n".join([*round_trip, f"family = {COUNTER}", "MADE = family, family.Metric()"]))

    gc.collect()
    registry = folder.models[0]._context.metrics

    assert [family.samples[0].value for family in registry.collect()] == [0]


def test_a_family_is_made_by_a_model():
    with pytest.raises(pb_utils.TritonModelException, match="make it in the model's initialize"):
        pb_utils.MetricFamily("c", "A counter", pb_utils.MetricFamily.COUNTER)


def test_a_family_of_an_unknown_kind_is_refused():
    with pytest.raises(TypeError, match=r"no kind 7; use MetricFamily\.COUNTER"):
        pb_utils.MetricFamily("c", "A counter", 7)


@pytest.mark.parametrize(("name", "description"), [(1, "d"), ("c", None)])
def test_a_family_takes_texts(name, description):
    with pytest.raises(TypeError, match="a str"):
        pb_utils.MetricFamily(name, description, pb_utils.MetricFamily.COUNTER)


def test_a_native_model_makes_metrics_where_it_is_loaded():
    @model
    class Counting:
        def load(self, context: ModelContext) -> None:
            seen = context.metrics.family("seen", "Numbers seen", "counter")
            self.seen = seen.metric({"parity": "even"}), seen.metric({"parity": "odd"})

        def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
            self.seen[int(x[0]) % 2].increment()
            return np.array([self.seen[1].value()], np.int64)

    with serve(Counting) as client:
        answers = [client.infer(x=[number])["output"].item() for number in range(3)]
        result = shown(client)

    assert answers == [0, 1, 1]
    assert result["seen", (("parity", "even"),)] == 2


def test_a_load_that_clashes_with_another_model_fails_with_the_reason(folder):
    folder.write(INITIALIZE.replace('"things"', '"level"'), CONFIG)

    with pytest.raises(ModelNotReadyError, match="metric family 'level' is there already"), serve(folder.path):
        pass

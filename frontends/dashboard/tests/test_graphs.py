"""The layout of ensembles."""

from naiad_config.text import parse_text
from naiad_dashboard.graphs import graph

ENSEMBLE = """
name: "e" platform: "ensemble"
input [ { name: "IN" data_type: TYPE_FP32 dims: 1 } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: 1 }, { name: "EARLY" data_type: TYPE_FP32 dims: 1 } ]
ensemble_scheduling { step [
  { model_name: "second" model_version: 3 input_map { key: "x" value: "EARLY" } output_map { key: "y" value: "OUT" } },
  { model_name: "first" model_version: -1 input_map { key: "x" value: "IN" } output_map { key: "y" value: "EARLY" } }
] }
"""


def test_each_step_is_right_of_those_that_it_needs():
    drawn = graph(parse_text(ENSEMBLE))

    x = {(box.label, box.model): box.x for box in drawn.boxes}
    assert x["IN", ""] < x["first", "first"] < x["second", "second"] < x["OUT", ""] == x["EARLY", ""]
    assert {(box.model, box.version) for box in drawn.boxes if box.model} == {("first", 0), ("second", 3)}


def test_every_tensor_has_an_arrow_and_none_passes_behind_a_box():
    drawn = graph(parse_text(ENSEMBLE))

    assert sorted(arrow.tensor for arrow in drawn.arrows) == ["EARLY", "EARLY", "IN", "OUT"]
    second = next(box for box in drawn.boxes if box.model == "second")
    (passing,) = (arrow for arrow in drawn.arrows if " H" in arrow.path)
    y = int(passing.path.split(" H")[0].split()[-1])
    assert not second.y <= y <= second.y + 58


def test_a_ring_of_steps_ends():
    ring = ENSEMBLE.replace('value: "IN"', 'value: "OUT"')

    assert graph(parse_text(ring)).boxes

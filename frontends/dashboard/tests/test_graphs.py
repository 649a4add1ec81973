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
    (passing,) = (arrow for arrow in drawn.arrows if " L" in arrow.path)
    y = int(passing.path.split(" L")[0].split()[-1])
    assert not second.y <= y <= second.y + 58


def test_a_graph_that_grows_down_has_each_step_below_those_that_it_needs_and_is_narrower():
    right, down = graph(parse_text(ENSEMBLE)), graph(parse_text(ENSEMBLE), down=True)

    y = {(box.label, box.model): box.y for box in down.boxes}
    assert y["IN", ""] < y["first", "first"] < y["second", "second"] < y["OUT", ""] == y["EARLY", ""]
    assert down.width < right.width
    assert all(box.x > 0 and box.x + down.box[0] < down.width and box.y + 58 < down.height for box in down.boxes)
    (passing,) = (arrow for arrow in down.arrows if " L" in arrow.path)
    second = next(box for box in down.boxes if box.model == "second")
    assert not second.x <= int(passing.path.split(" L")[1].split()[0]) <= second.x + down.box[0]


def test_outputs_stand_where_their_arrows_come_from():
    config = parse_text("""
        platform: "ensemble"
        input [ { name: "A" data_type: TYPE_FP32 dims: 1 }, { name: "B" data_type: TYPE_FP32 dims: 1 } ]
        output [ { name: "OF_B" data_type: TYPE_FP32 dims: 1 }, { name: "OF_A" data_type: TYPE_FP32 dims: 1 } ]
        ensemble_scheduling { step [
          { model_name: "a" input_map { key: "x" value: "A" } output_map { key: "y" value: "OF_A" } },
          { model_name: "b" input_map { key: "x" value: "B" } output_map { key: "y" value: "OF_B" } }
        ] }""")

    y = {box.label: box.y for box in graph(config).boxes}

    assert y["A"] == y["a"] == y["OF_A"] < y["B"] == y["b"] == y["OF_B"]


def test_a_ring_of_steps_ends():
    ring = ENSEMBLE.replace('value: "IN"', 'value: "OUT"')

    assert graph(parse_text(ring)).boxes

"""The CUDA graphs that a configuration asks for."""

import pytest

from naiad.errors import ConfigError
from naiad_config.text import parse_text
from naiad_tensorrt.graphs import graph_specs
from naiad_tensorrt.options import GraphSpec

from .conftest import ADD_SUB, described, tensor

IMAGES = described(tensor("x", -1, 3, -1), tensor("y", -1, output=True), batches=[(1, 4, 8), (4, 32, 64)])
"""An engine of which the last dim of `x` varies too, in the range of the batch."""

SHAPED = described(
    tensor("x", -1, 2),
    tensor("size", 2, kind="INT32", is_shape_tensor=True),
    tensor("y", -1, -1, output=True),
    size=((1, 1), (4, 9), (8, 16)),
)


def specs(text, engine=ADD_SUB, profiles=(0,), size=8, more=""):
    config = parse_text(f"max_batch_size: {size} {more} optimization {{ cuda {{ {text} }} }}")
    return graph_specs(config, engine, profiles)


def problems(*arguments, **more):
    with pytest.raises(ConfigError) as caught:
        specs(*arguments, **more)
    return [(problem.path, problem.message) for problem in caught.value.problems]


def exact(shapes, profile=0, values=None):
    return GraphSpec(profile, shapes, shapes, values or {})


def rows(count):
    return {"A": (count, 16), "B": (count, 16)}


def test_there_are_no_graphs_unless_they_are_asked_for():
    assert graph_specs(parse_text("max_batch_size: 8"), ADD_SUB, (0,)) == ()
    assert specs("graphs: false graph_spec { batch_size: 1 }") == ()


def test_a_graph_is_captured_for_each_batch_size_that_is_written():
    actual = specs(
        "graphs: true graph_spec { batch_size: 1 } graph_spec { batch_size: 4 } graph_spec { batch_size: 4 }"
    )

    assert actual == (exact(rows(1)), exact(rows(4)))


def test_without_a_specification_the_likely_batch_sizes_get_graphs():
    actual = specs("graphs: true", more="dynamic_batching { preferred_batch_size: [ 4, 8 ] }")

    assert actual == (exact(rows(1)), exact(rows(4)), exact(rows(8)))


def test_a_likely_batch_that_no_profile_takes_gets_no_graph():
    engine = described(*ADD_SUB.tensors, batches=[(2, 4, 8)])

    assert specs("graphs: true", engine) == (exact(rows(8)),)


def test_likely_graphs_have_the_best_of_dims_that_vary():
    assert specs("graphs: true", IMAGES) == (exact({"x": (1, 3, 4)}), exact({"x": (8, 3, 4)}))


def test_a_model_that_does_not_batch_has_one_graph():
    engine = described(tensor("x", 2, 4), tensor("y", 2, output=True))

    assert specs("graphs: true", engine, size=0) == (exact({"x": (2, 4)}),)
    assert specs("graphs: true graph_spec { }", engine, size=0) == (exact({"x": (2, 4)}),)


def test_dims_that_vary_are_written_without_the_batch():
    text = 'graphs: true graph_spec { batch_size: 2 input { key: "x" value { dim: [ 3, 8 ] } } }'

    assert specs(text, IMAGES) == (exact({"x": (2, 3, 8)}),)


def test_a_graph_is_for_the_profile_that_such_a_batch_runs_on():
    text = 'graphs: true graph_spec { batch_size: 8 input { key: "x" value { dim: [ 3, 8 ] } } }'

    assert specs(text, IMAGES, (1, 0)) == (exact({"x": (8, 3, 8)}, profile=0),)
    assert specs(text, IMAGES, (1,)) == (exact({"x": (8, 3, 8)}, profile=1),)


def test_a_graph_with_a_lower_bound_is_for_every_profile_that_takes_its_shape():
    text = """
        graphs: true
        graph_spec {
          batch_size: 8 input { key: "x" value { dim: [ 3, 8 ] } }
          graph_lower_bound { batch_size: 2 input { key: "x" value { dim: [ 3, 5 ] } } }
        }
    """

    assert specs(text, IMAGES, (0, 1)) == tuple(
        GraphSpec(profile, {"x": (8, 3, 8)}, {"x": (2, 3, 5)}, {}) for profile in (0, 1)
    )


def test_inputs_that_the_lower_bound_leaves_out_are_as_above_it():
    text = """
        graphs: true
        graph_spec {
          batch_size: 8 input { key: "x" value { dim: [ 3, 8 ] } } graph_lower_bound { batch_size: 2 }
        }
    """

    assert specs(text, IMAGES)[0].lower == {"x": (2, 3, 8)}


def test_what_is_written_of_a_shape_tensor_is_its_values():
    text = 'graphs: true graph_spec { batch_size: 4 input { key: "size" value { dim: 9 } } }'

    assert specs(text, SHAPED) == (exact({"x": (4, 2), "size": (2,)}, values={"size": (4, 9)}),)
    assert specs("graphs: true", SHAPED)[-1].values == {"size": (8, 9)}


def test_ragged_inputs_and_batch_inputs_are_written_whole():
    engine = described(tensor("x", -1), tensor("counts", -1), tensor("y", -1, output=True), batches=[(1, 8, 64)])
    more = """
        input { name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "counts" data_type: TYPE_FP32 source_input: "x" }
    """
    text = """
        graphs: true
        graph_spec {
          batch_size: 4 input { key: "x" value { dim: 40 } } input { key: "counts" value { dim: 4 } }
        }
    """

    assert specs(text, engine, more=more) == (exact({"x": (40,), "counts": (4,)}),)


@pytest.mark.parametrize(
    ("spec", "size", "problem"),
    [
        ("", 8, ("batch_size", "the batch size must be from 1 to max_batch_size 8, not 0")),
        ("batch_size: 9", 8, ("batch_size", "the batch size must be from 1 to max_batch_size 8, not 9")),
        ("batch_size: 1", 0, ("batch_size", "the batch size must be 0 for a model that does not batch, not 1")),
        (
            "batch_size: 8 graph_lower_bound { }",
            8,
            ("graph_lower_bound.batch_size", "the batch size must be from 1 to max_batch_size 8, not 0"),
        ),
    ],
)
def test_batch_sizes_must_be_those_of_the_model(spec, size, problem):
    path, message = problem

    assert (f"optimization.cuda.graph_spec[0].{path}", message) in problems(
        f"graphs: true graph_spec {{ {spec} }}", size=size
    )


def test_dims_that_vary_must_be_written():
    ((path, message),) = problems("graphs: true graph_spec { batch_size: 1 }", IMAGES)

    assert path == "optimization.cuda.graph_spec[0].input"
    assert message == "input 'x' has variable dims [3,-1], and the graph does not say which to take"


def test_inputs_must_be_those_of_the_engine_with_their_rank():
    text = """
        graphs: true
        graph_spec {
          batch_size: 1 input { key: "z" value { dim: 1 } } input { key: "x" value { dim: [ 1, 3, 4 ] } }
        }
    """

    assert problems(text, IMAGES) == [
        ("optimization.cuda.graph_spec[0].input[z]", "the engine has no input 'z'"),
        ("optimization.cuda.graph_spec[0].input[x]", "input 'x' takes 2 dims [3,-1] here, not [1,3,4]"),
    ]


def test_a_graph_must_fit_a_profile():
    text = 'graphs: true graph_spec { batch_size: 2 input { key: "x" value { dim: [ 3, 99 ] } } }'

    assert problems(text, IMAGES, (0, 1)) == [
        ("optimization.cuda.graph_spec[0]", "this graph fits none of the profiles 0, 1")
    ]


def test_a_graph_that_fits_the_profile_of_another_group_is_left_to_that_group():
    text = 'graphs: true graph_spec { batch_size: 2 input { key: "x" value { dim: [ 3, 60 ] } } }'
    groups = 'instance_group [{ profile: "0" }, { profile: "1" }]'
    engine = described(tensor("x", -1, 3, -1), tensor("y", -1, output=True), batches=[(1, 4, 8), (1, 32, 64)])

    assert specs(text, engine, (0,), more=groups) == ()
    assert specs(text, engine, (1,), more=groups) == (exact({"x": (2, 3, 60)}, profile=1),)


def test_a_lower_bound_must_not_be_above_its_graph():
    text = "graphs: true graph_spec { batch_size: 2 graph_lower_bound { batch_size: 4 } }"

    assert problems(text) == [
        (
            "optimization.cuda.graph_spec[0]",
            "this graph has a lower bound above its shape for input 'A': [4,16] and [2,16]",
        )
    ]


def test_a_graph_has_one_value_of_each_shape_tensor():
    text = """
        graphs: true
        graph_spec {
          batch_size: 4 input { key: "size" value { dim: 9 } } graph_lower_bound { batch_size: 2 }
        }
    """

    ((_, message),) = problems(text, SHAPED)
    assert (
        message
        == "this graph has other values of a shape tensor at its lower bound, which a captured graph cannot change"
    )

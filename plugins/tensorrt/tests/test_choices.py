"""Which profile and which CUDA graph a batch gets."""

import pytest

from naiad_tensorrt.choices import graph_for, profile_for
from naiad_tensorrt.description import Profile
from naiad_tensorrt.options import GraphSpec


def profile(index, *, values=None, **shapes):
    return Profile(index, shapes, values or {})


SMALL = profile(0, x=((1, 4), (2, 4), (8, 4)))
LARGE = profile(1, x=((1, 4), (16, 4), (32, 4)))
LONG = profile(2, x=((1, 4), (2, 64), (8, 128)))


@pytest.mark.parametrize(
    ("shape", "chosen"),
    [
        ((1, 4), 0),
        ((8, 4), 0),
        ((9, 4), 1),
        ((32, 4), 1),
        ((33, 4), None),
        ((2, 5), 2),
        ((2, 128), 2),
        ((2, 129), None),
        ((2, 3), None),
        ((2,), None),
        ((2, 4, 1), None),
    ],
)
def test_a_batch_gets_the_profile_that_takes_its_shape(shape, chosen):
    assert profile_for({"x": shape}, {}, [SMALL, LARGE, LONG]) == chosen


@pytest.mark.parametrize(("rows", "chosen"), [(3, 0), (8, 0), (9, 0), (10, 1), (16, 1)])
def test_of_several_profiles_the_one_with_the_nearest_optimum_is_taken(rows, chosen):
    wide = profile(0, x=((1, 4), (2, 4), (32, 4)))

    assert profile_for({"x": (rows, 4)}, {}, [wide, LARGE]) == chosen


def test_of_two_profiles_at_the_same_distance_the_first_is_taken():
    twins = [profile(3, x=((1,), (2,), (9,))), profile(1, x=((1,), (4,), (9,)))]

    assert profile_for({"x": (3,)}, {}, twins) == 3
    assert profile_for({"x": (3,)}, {}, twins[::-1]) == 1


def test_only_the_profiles_that_are_offered_are_chosen_from():
    assert profile_for({"x": (9, 4)}, {}, [SMALL]) is None


def test_every_input_must_fit_the_same_profile():
    first = profile(0, x=((1,), (1,), (4,)), y=((1,), (1,), (4,)))
    second = profile(1, x=((5,), (5,), (8,)), y=((5,), (5,), (8,)))

    assert profile_for({"x": (6,), "y": (7,)}, {}, [first, second]) == 1
    assert profile_for({"x": (2,), "y": (7,)}, {}, [first, second]) is None


def test_the_values_of_shape_tensors_decide_as_shapes_do():
    one = profile(0, values={"size": ((1, 1), (1, 8), (4, 16))}, size=((2,), (2,), (2,)))
    two = profile(1, values={"size": ((1, 1), (1, 32), (4, 64))}, size=((2,), (2,), (2,)))

    assert profile_for({"size": (2,)}, {"size": (1, 9)}, [one, two]) == 0
    assert profile_for({"size": (2,)}, {"size": (4, 17)}, [one, two]) == 1
    assert profile_for({"size": (2,)}, {"size": (5, 17)}, [one, two]) is None


def test_a_graph_serves_its_own_shapes():
    graphs = [graph(2), graph(4)]

    assert graph_for(0, {"x": (4, 3)}, {}, graphs) == 1
    assert graph_for(0, {"x": (3, 3)}, {}, graphs) is None


def test_a_graph_with_a_lower_bound_serves_what_is_between():
    graphs = [graph(8, lower=5), graph(4, lower=2)]

    assert [graph_for(0, {"x": (rows, 3)}, {}, graphs) for rows in (1, 2, 4, 5, 8, 9)] == [None, 1, 1, 0, 0, None]


def test_the_graph_with_the_least_to_fill_up_is_taken():
    graphs = [graph(8, lower=1), graph(4, lower=1), graph(4)]

    assert [graph_for(0, {"x": (rows, 3)}, {}, graphs) for rows in (3, 4, 5)] == [1, 1, 0]


def test_a_graph_serves_its_own_profile_and_its_own_values_alone():
    graphs = [graph(4, profile=1, values={"size": (4, 7)})]

    assert graph_for(1, {"x": (4, 3)}, {"size": (4, 7)}, graphs) == 0
    assert graph_for(0, {"x": (4, 3)}, {"size": (4, 7)}, graphs) is None
    assert graph_for(1, {"x": (4, 3)}, {"size": (4, 8)}, graphs) is None


def test_a_graph_for_other_inputs_or_ranks_serves_nothing():
    assert graph_for(0, {"x": (4, 3), "y": (1,)}, {}, [graph(4)]) is None
    assert graph_for(0, {"x": (4, 3, 1)}, {}, [graph(4)]) is None
    assert graph_for(0, {"x": (4, 3)}, {}, []) is None


def graph(rows, *, lower=None, profile=0, values=None):
    return GraphSpec(profile, {"x": (rows, 3)}, {"x": (lower or rows, 3)}, values or {})

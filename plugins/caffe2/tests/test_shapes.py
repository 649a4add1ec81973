"""Operators that change the dims of a value, or tell them, against numpy."""

import numpy as np
import pytest

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one

NUMBERS = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("kind", "arguments", "shape"),
    [
        ("Reshape", {"shape": [4, 6]}, (4, 6)),
        ("Reshape", {"shape": [0, -1]}, (2, 12)),
        ("Reshape", {"shape": [-1]}, (24,)),
        ("Flatten", {}, (2, 12)),
        ("Flatten", {"axis": 2}, (6, 4)),
        ("Flatten", {"axis": 0}, (1, 24)),
        ("FlattenToVec", {}, (24,)),
        ("ExpandDims", {"dims": [0, 3]}, (1, 2, 3, 1, 4)),
        ("ExpandDims", {"dims": [1]}, (2, 1, 3, 4)),
        ("MergeDim", {}, (6, 4)),
        ("PrependDim", {"dim_size": 2}, (2, 1, 3, 4)),
    ],
)
def test_the_same_numbers_in_other_dims(kind, arguments, shape):
    answer = one(kind, NUMBERS, **arguments)

    assert answer.tolist() == NUMBERS.reshape(shape).tolist()


def test_a_shape_may_be_an_input_and_the_old_one_an_output():
    shape = np.array([6, -1], np.int64)

    for constants in ([], [1]):
        answer, old = one("Reshape", NUMBERS, shape, constants=constants, outputs=2)

        assert answer.tolist() == NUMBERS.reshape(6, 4).tolist()
        assert old.tolist() == [2, 3, 4]


def test_a_shape_of_small_numbers_will_do():
    assert one("Reshape", NUMBERS, np.array([4, 6], np.int32)).shape == (4, 6)


def test_one_value_takes_the_dims_of_another():
    assert one("ResizeLike", NUMBERS, np.zeros((4, 6), np.float32)).tolist() == NUMBERS.reshape(4, 6).tolist()


def test_dims_of_one_are_dropped():
    assert one("Squeeze", NUMBERS.reshape(2, 1, 3, 1, 4), dims=[3, 1]).tolist() == NUMBERS.tolist()


@pytest.mark.parametrize(
    ("kind", "arguments", "axes"),
    [
        ("Transpose", {}, (2, 1, 0)),
        ("Transpose", {"axes": [1, 0, 2]}, (1, 0, 2)),
        ("NCHW2NHWC", {}, (0, 2, 1)),
        ("NHWC2NCHW", {}, (0, 2, 1)),
    ],
)
def test_axes_change_positions(kind, arguments, axes):
    assert one(kind, NUMBERS, **arguments).tolist() == NUMBERS.transpose(axes).tolist()


def test_orders_of_pictures_are_turned_into_each_other():
    picture = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)

    last = one("NCHW2NHWC", picture)

    assert last.tolist() == picture.transpose(0, 2, 3, 1).tolist()
    assert one("NHWC2NCHW", last).tolist() == picture.tolist()


def test_dims_and_sizes_are_reported():
    assert one("Shape", NUMBERS).tolist() == [2, 3, 4]
    assert one("Shape", NUMBERS, axes=[2, 0]).tolist() == [4, 2]
    assert one("Size", NUMBERS).tolist() == [24]


@pytest.mark.parametrize(("tiles", "axis", "repeats"), [(3, 0, (3, 1, 1)), (2, 1, (1, 2, 1)), (2, -1, (1, 1, 2))])
def test_copies_stand_behind_each_other(tiles, axis, repeats):
    written = one("Tile", NUMBERS, tiles=tiles, axis=axis)
    numbers = [np.array([tiles], np.int32), np.array([axis], np.int32)]

    assert written.tolist() == np.tile(NUMBERS, repeats).tolist()
    assert one("Tile", NUMBERS, *numbers, constants=[1, 2]).tolist() == written.tolist()


@pytest.mark.parametrize(
    ("kind", "inputs", "arguments", "message"),
    [
        ("Squeeze", [NUMBERS], {}, "needs its argument 'dims'"),
        ("Reshape", [NUMBERS, np.array([24])], {"shape": [24]}, "has a shape as an input and as an argument"),
        ("Reshape", [NUMBERS], {"shape": "wide"}, "must be a list"),
        ("MergeDim", [NUMBERS[0, 0]], {}, "merges two dims, and its input has fewer"),
        ("Tile", [NUMBERS, np.array([2])], {}, "takes its number of tiles or its axis from values that are computed"),
    ],
)
def test_dims_that_are_invalid_are_refused(kind, inputs, arguments, message):
    with pytest.raises(TranslationError) as raised:
        one(kind, *inputs, **arguments)

    assert message in str(raised.value)

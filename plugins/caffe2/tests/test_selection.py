"""Taking some elements out of a value, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("starts", "ends", "expected"),
    [
        ([0, 1, 0], [-1, -1, 2], A[:, 1:, :2]),
        ([0, 0], [1, -2], A[:1, :2]),
        ([1], [-1], A[1:]),
        ([0, 0, -3], [-1, -1, -1], A[:, :, 2:]),
        ([0, -1], [-1, -1], A[:, 3:]),
    ],
)
def test_a_piece_is_cut_out(starts, ends, expected):
    bounds = [np.array(starts, np.int32), np.array(ends, np.int32)]

    assert one("Slice", A, starts=starts, ends=ends).tolist() == expected.tolist()
    assert one("Slice", A, *bounds, constants=[1, 2]).tolist() == expected.tolist()


@settings(max_examples=25)
@given(st.integers(-5, 5), st.integers(-5, 5))
def test_bounds_below_nothing_count_from_behind_the_last_element(start, end):
    row = np.arange(4, dtype=np.float32)
    first, last = (bound if bound >= 0 else max(0, 5 + bound) for bound in (start, end))

    assert one("Slice", row, starts=[start], ends=[end]).tolist() == row[first:last].tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_are_gathered_by_their_indices(dtype):
    indices = np.array([[1, 0], [1, 1]], dtype)

    assert one("Gather", A, indices).tolist() == A[indices].tolist()
    assert one("Gather", A, indices, axis=2).tolist() == A[:, :, indices].tolist()
    assert one("BatchGather", A, indices).tolist() == A[:, indices].tolist()


def test_the_largest_are_given_with_their_indices():
    row = np.array([[3, 1, 4, 1.5], [2, 7, 1, 8]], np.float32)

    for extra, arguments in (([], {"k": 2}), ([np.array([2], np.int32)], {})):
        values, indices = one("TopK", row, *extra, outputs=2, **arguments)

        assert values.tolist() == [[4, 3], [8, 7]]
        assert (indices.dtype, indices.tolist()) == (np.int64, [[2, 0], [3, 1]])
    values, indices = one("TopK", row, outputs=2, k=1, axis=0)
    assert (values.tolist(), indices.tolist()) == ([[3, 7, 4, 8]], [[0, 1, 0, 1]])


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_the_index_of_the_extreme_is_given(kind, random):
    numbers = random.permutation(24).reshape(2, 3, 4).astype(np.float32)
    index = getattr(np, kind.lower())

    assert one(kind, numbers).tolist() == index(numbers, -1, keepdims=True).tolist()
    assert one(kind, numbers, axis=1, keepdims=0).tolist() == index(numbers, 1).tolist()


def test_indices_become_rows_with_a_single_one():
    answer = one("OneHot", np.array([2, 0], np.int64), np.array([3], np.int64))

    assert (answer.dtype, answer.tolist()) == (np.float32, [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("kind", "inputs", "arguments", "message"),
    [
        ("Slice", [A], {"starts": [0], "ends": [1, 1]}, "needs as many starts as ends, and one at least"),
        ("Slice", [A, np.array([1])], {}, "has starts as an input, and no ends"),
        ("Slice", [A, np.array([1]), np.array([2])], {}, "takes its bounds from values that are computed"),
        ("Gather", [A, np.array([1])], {"match_outer": 1}, "has match_outer, which naiad-caffe2 does not know"),
    ],
)
def test_choices_that_cannot_be_made_are_refused(kind, inputs, arguments, message):
    with pytest.raises(TranslationError) as raised:
        one(kind, *inputs, **arguments)

    assert message in str(raised.value)

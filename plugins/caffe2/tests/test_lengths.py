"""Rows of several lengths behind each other, against loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .nets import one

LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def by_length(rows, lengths, reduce):
    ends = np.cumsum(lengths)
    parts = [rows[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    return np.stack([reduce(part) if len(part) else np.zeros(rows.shape[1:], rows.dtype) for part in parts])


def numbers(count, *shape):
    return np.random.default_rng(count).standard_normal((count, *shape)).astype(np.float32)


@settings(max_examples=15)
@given(LENGTHS, st.sampled_from([(), (3,), (2, 2)]), st.sampled_from(["LengthsSum", "LengthsMean", "LengthsMax"]))
def test_rows_are_reduced_by_their_lengths(lengths, shape, kind):
    rows = numbers(sum(lengths), *shape)

    answer = one(kind, rows, np.array(lengths, np.int32))

    reduce = getattr(np, kind.removeprefix("Lengths").lower())
    np.testing.assert_allclose(
        answer, by_length(rows, lengths, lambda part: reduce(part, axis=0)), rtol=1e-4, atol=1e-5
    )


@settings(max_examples=8)
@given(LENGTHS)
def test_rows_are_gathered_before_they_are_reduced(lengths):
    table, weights = numbers(5, 3), numbers(sum(lengths))
    indices = np.random.default_rng(1).integers(0, 5, sum(lengths))
    message = np.array(lengths, np.int32)
    rows = table[indices]

    summed = one("SparseLengthsSum", table, indices, message)
    mean = one("SparseLengthsMean", table, indices, message)
    weighted = one("SparseLengthsWeightedSum", table, weights, indices, message)

    np.testing.assert_allclose(summed, by_length(rows, lengths, lambda part: part.sum(0)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, by_length(rows, lengths, lambda part: part.mean(0)), rtol=1e-4, atol=1e-5)
    expected = by_length(rows * weights[:, None], lengths, lambda part: part.sum(0))
    np.testing.assert_allclose(weighted, expected, rtol=1e-4, atol=1e-5)


def test_rows_have_weights():
    rows, weights = numbers(3, 2), np.array([1, 2, 3], np.float32)

    answer = one("LengthsWeightedSum", rows, weights, np.array([1, 2], np.int32))

    np.testing.assert_allclose(answer, [rows[0], 2 * rows[1] + 3 * rows[2]], rtol=1e-5)


def test_each_row_is_reported_its_segment():
    answer = one("LengthsToSegmentIds", np.array([2, 0, 3], np.int32))

    assert (answer.dtype, answer.tolist()) == (np.int32, [0, 0, 2, 2, 2])


@pytest.mark.parametrize("lengths", [[2, 2], [2, 4], [9]])
def test_lengths_that_do_not_sum_to_the_rows_fail(lengths):
    with pytest.raises(Exception, match="invalid indice found"):
        one("LengthsSum", numbers(5, 2), np.array(lengths, np.int32))

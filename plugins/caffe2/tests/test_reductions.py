"""One value out of many along some axes, against numpy."""

import numpy as np
import pytest

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one

REDUCTIONS = {
    "Sum": np.sum,
    "Mean": np.mean,
    "Max": np.max,
    "Min": np.min,
    "L1": lambda x, axis=None, keepdims=False: np.abs(x).sum(axis, keepdims=keepdims),
    "L2": lambda x, axis=None, keepdims=False: np.sqrt((x**2).sum(axis, keepdims=keepdims)),
}


def floats(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"])
@pytest.mark.parametrize("arguments", [{}, {"axes": [1]}, {"axes": [0, 2], "keepdims": 0}, {"axes": [-1]}])
def test_axes_are_reduced(kind, arguments, random):
    sent, reduce = floats(random, 2, 3, 4), REDUCTIONS[kind.removeprefix("Reduce")]
    axes = tuple(arguments["axes"]) if "axes" in arguments else None

    answer = one(kind, sent, **arguments)

    expected = reduce(sent, axis=axes, keepdims=bool(arguments.get("keepdims", 1)))
    assert answer.shape == expected.shape
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["ReduceBackSum", "ReduceBackMean", "ReduceBackMax"])
@pytest.mark.parametrize(("count", "axes"), [(None, (2,)), (2, (1, 2)), (3, (0, 1, 2))])
def test_the_last_axes_are_reduced(kind, count, axes, random):
    sent = floats(random, 2, 3, 4)

    answer = one(kind, sent, **({} if count is None else {"num_reduce_dim": count}))

    expected = REDUCTIONS[kind.removeprefix("ReduceBack")](sent, axis=axes)
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["ReduceFrontSum", "ReduceFrontMean", "ReduceFrontMax"])
@pytest.mark.parametrize(("count", "axes"), [(1, (0,)), (2, (0, 1))])
def test_the_first_axes_are_reduced(kind, count, axes, random):
    sent = floats(random, 2, 3, 4)

    answer = one(kind, sent, num_reduce_dim=count)

    expected = REDUCTIONS[kind.removeprefix("ReduceFront")](sent, axis=axes)
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


def test_all_elements_become_one(random):
    sent = floats(random, 3, 4)

    for kind, arguments, expected in (
        ("SumElements", {}, sent.sum()),
        ("SumElements", {"average": 1}, sent.mean()),
        ("SumSqrElements", {}, (sent**2).sum()),
        ("SumSqrElements", {"average": 1}, (sent**2).mean()),
        ("AveragedLoss", {}, sent.mean()),
    ):
        answer = one(kind, sent, **arguments)

        assert answer.shape == ()
        np.testing.assert_allclose(answer, expected, rtol=1e-5)


def test_matrices_have_a_largest_in_each_row_or_column(random):
    sent = floats(random, 2, 3, 4)

    assert one("RowwiseMax", sent).tolist() == sent.max(2).tolist()
    assert one("ColwiseMax", sent).tolist() == sent.max(1).tolist()


def test_more_dims_than_there_are_cannot_be_reduced(random):
    with pytest.raises(TranslationError, match="reduces 4 dims of an input with 3"):
        one("ReduceBackSum", floats(random, 2, 3, 4), num_reduce_dim=4)

"""Products of matrices, against torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one


def floats(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "weights", "arguments", "expected"),
    [
        ((3, 4), (5, 4), {}, (3, 5)),
        ((3, 2, 2), (5, 4), {}, (3, 5)),
        ((3, 2, 4), (5, 4), {"axis": 2}, (3, 2, 5)),
        ((3, 2, 2, 2), (5, 4), {"axis": 2}, (3, 2, 5)),
        ((3, 2, 4), (5, 4), {"axis": -1}, (3, 2, 5)),
        ((3, 4), (5, 2, 2), {}, (3, 5)),
        ((3, 4), (5, 1, 4), {"axis_w": 2}, (3, 5)),
    ],
)
@pytest.mark.parametrize("kind", ["FC", "FCTransposed"])
def test_a_layer_is_fully_connected(kind, shape, weights, arguments, expected, random):
    sent, matrix, bias = floats(random, *shape), floats(random, *weights), floats(random, 5)
    target = functional.linear(*map(torch.from_numpy, (sent.reshape(-1, 4), matrix.reshape(5, 4), bias))).numpy()
    if kind == "FCTransposed":
        matrix = np.ascontiguousarray(matrix.reshape(5, 4).T)
        arguments = {name: value for name, value in arguments.items() if name != "axis_w"}

    answer = one(kind, sent, matrix, bias, constants=[1, 2], **arguments)

    assert answer.shape == expected
    np.testing.assert_allclose(answer, target.reshape(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_two_matrices_are_multiplied(trans_a, trans_b, random):
    a, b = floats(random, 3, 4), floats(random, 4, 5)

    answer = one("MatMul", a.T if trans_a else a, b.T if trans_b else b, trans_a=trans_a, trans_b=trans_b)

    np.testing.assert_allclose(answer, a @ b, rtol=1e-5, atol=1e-5)


def test_what_has_more_dims_is_flattened_to_a_matrix(random):
    a, b = floats(random, 2, 3, 4), floats(random, 2, 2, 5)

    answer = one("MatMul", a, b, axis_a=2, axis_b=2)

    np.testing.assert_allclose(answer, a.reshape(6, 4) @ b.reshape(4, 5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3), (2, 6, 3)])
def test_batches_of_matrices_are_multiplied(trans_a, trans_b, shape, random):
    a, b = floats(random, *shape[:-1], 3, 4), floats(random, *shape[:-1], 4, 5)
    first = np.swapaxes(a, -1, -2) if trans_a else a
    second = np.swapaxes(b, -1, -2) if trans_b else b

    answer = one("BatchMatMul", first, second, trans_a=trans_a, trans_b=trans_b)

    np.testing.assert_allclose(answer, a @ b, rtol=1e-5, atol=1e-5)


def test_one_matrix_meets_a_batch_of_them(random):
    a, b = floats(random, 2, 3, 4), floats(random, 4, 5)

    np.testing.assert_allclose(one("BatchMatMul", a, b, broadcast=1), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "shape"), [("FC", (5, 4)), ("FCTransposed", (4, 5))])
def test_matrices_that_do_not_fit_are_refused(kind, shape, random):
    with pytest.raises(
        TranslationError, match=f"operator 0 {kind} of the net has rows of 3 numbers, and weights for 4"
    ):
        one(kind, floats(random, 2, 3), floats(random, *shape), floats(random, 5), constants=[1, 2])

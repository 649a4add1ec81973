"""How far rows are from each other, against torch and numpy."""

import numpy as np
import torch
from torch.nn import functional

from .nets import one


def test_rows_are_compared(random):
    a, b = (random.standard_normal((4, 3)).astype(np.float32) for _ in range(2))
    cosine = functional.cosine_similarity(torch.from_numpy(a), torch.from_numpy(b)).numpy()

    for kind, expected in (
        ("DotProduct", (a * b).sum(1)),
        ("SquaredL2Distance", ((a - b) ** 2).sum(1) / 2),
        ("L1Distance", np.abs(a - b).sum(1)),
        ("CosineSimilarity", cosine),
    ):
        np.testing.assert_allclose(one(kind, a, b), expected, rtol=1e-4, atol=1e-5)


def test_elements_that_stand_alone_are_rows():
    assert one("DotProduct", np.array([1, 2], np.float32), np.array([3, 4], np.float32)).tolist() == [3, 8]


def test_rows_have_factors(random):
    rows, factors = random.standard_normal((3, 2, 2)).astype(np.float32), np.array([1, 2, 3], np.float32)

    np.testing.assert_allclose(one("RowMul", rows, factors), rows * factors[:, None, None], rtol=1e-6)


def test_elements_have_factors_and_summands(random):
    sent = random.standard_normal((3, 2, 2)).astype(np.float32)
    factors, summands = (random.standard_normal(4).astype(np.float32) for _ in range(2))

    answer = one("ElementwiseLinear", sent, factors, summands)

    np.testing.assert_allclose(answer, sent * factors.reshape(2, 2) + summands.reshape(2, 2), rtol=1e-5, atol=1e-6)

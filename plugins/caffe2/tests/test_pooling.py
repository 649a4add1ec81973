"""Pooling, against torch, and by the old rules of Caffe against a plain loop."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from naiad_caffe2.translation.arguments import TranslationError

from .nets import Net, one


def pooled_by_caffe(picture, kernel, stride, pad, best):
    """Pooling as Caffe does it: sizes are rounded up, and no window begins in the padding behind the picture."""
    size = picture.shape[-1]
    count = math.ceil((size + 2 * pad - kernel) / stride) + 1
    if pad > 0 and (count - 1) * stride >= size + pad:
        count -= 1
    rows = []
    for y in range(count):
        top = max(0, y * stride - pad)
        bottom = min(size, y * stride - pad + kernel)
        row = []
        for x in range(count):
            remaining = max(0, x * stride - pad)
            row.append(best(picture[..., top:bottom, remaining : min(size, x * stride - pad + kernel)], axis=(-2, -1)))
        rows.append(np.stack(row, -1))
    return np.stack(rows, -2)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        ("MaxPool", {"kernel": 2, "stride": 2}, lambda x: functional.max_pool2d(x, 2, 2)),
        ("MaxPool", {"kernel": 3, "stride": 2, "pad": 1}, lambda x: functional.max_pool2d(x, 3, 2, 1)),
        ("MaxPool2D", {"kernels": [3, 2]}, lambda x: functional.max_pool2d(x, (3, 2), 1)),
        ("MaxPool", {"kernel": 2, "dilation": 2}, lambda x: functional.max_pool2d(x, 2, 1, dilation=2)),
        ("MaxPool", {"global_pooling": 1}, lambda x: x.amax((2, 3), keepdim=True)),
        ("AveragePool", {"global_pooling": 1}, lambda x: x.mean((2, 3), keepdim=True)),
        ("AveragePool", {"kernel": 3, "stride": 2}, lambda x: functional.avg_pool2d(x, 3, 2)),
        (
            "AveragePool2D",
            {"kernel": 3, "stride": 2, "pad": 1},
            lambda x: functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        ),
        (
            "AveragePool",
            {"kernel": 3, "stride": 2, "pad": 1, "count_include_pad": 1},
            lambda x: functional.avg_pool2d(x, 3, 2, 1),
        ),
        ("LpPool", {"kernel": 2, "stride": 2}, lambda x: functional.lp_pool2d(x.abs(), 2.0, 2, 2)),
        ("LpPool", {"kernel": 2, "stride": 2, "p": 3}, lambda x: functional.lp_pool2d(x.abs(), 3.0, 2, 2)),
    ],
)
def test_a_picture_is_pooled(order, kind, arguments, expected, random):
    picture = random.standard_normal((2, 3, 7, 8)).astype(np.float32)
    target = expected(torch.from_numpy(picture)).numpy()

    if order == "NCHW":
        answer = one(kind, picture, **arguments)
    else:
        answer = one(kind, picture.transpose(0, 2, 3, 1), order=order, **arguments).transpose(0, 3, 1, 2)

    np.testing.assert_allclose(answer, target, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "axes", "expected"),
    [
        ("MaxPool1D", 1, functional.max_pool1d),
        ("MaxPool3D", 3, functional.max_pool3d),
        ("AveragePool1D", 1, functional.avg_pool1d),
        ("AveragePool3D", 3, functional.avg_pool3d),
    ],
)
def test_pictures_may_have_one_axis_or_three(kind, axes, expected, random):
    picture = random.standard_normal((2, 3, *[6] * axes)).astype(np.float32)

    answer = one(kind, picture, kernels=[2] * axes, strides=[2] * axes)

    np.testing.assert_allclose(answer, expected(torch.from_numpy(picture), 2).numpy(), rtol=1e-6, atol=1e-6)


@settings(max_examples=60)
@given(
    size=st.integers(4, 13),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 4),
    pad=st.integers(0, 2),
    best=st.sampled_from([("MaxPool", np.max), ("AveragePool", np.mean)]),
)
def test_sizes_are_rounded_up_by_the_old_rules_of_caffe(size, kernel, stride, pad, best):
    assume(pad < kernel <= size)
    assume(pad or stride <= kernel)  # else Caffe has windows outside of the picture
    picture = np.random.default_rng(0).standard_normal((1, 2, size, size)).astype(np.float32)

    answer = one(best[0], picture, kernel=kernel, stride=stride, pad=pad, legacy_pad=3)

    np.testing.assert_allclose(answer, pooled_by_caffe(picture, kernel, stride, pad, best[1]), rtol=1e-5, atol=1e-5)


def test_the_same_size_comes_out_with_same_padding(random):
    picture = random.standard_normal((1, 1, 5, 5)).astype(np.float32)

    answer = one("MaxPool", picture, kernel=2, stride=2, legacy_pad=2)

    target = functional.max_pool2d(torch.from_numpy(picture), 2, 2, ceil_mode=True).numpy()
    np.testing.assert_allclose(answer, target)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("MaxPool", {}, "has neither a kernel nor global_pooling"),
        ("MaxPool", {"global_pooling": 1, "stride": 2}, "pools whole pictures (global_pooling), so it can have"),
        ("MaxPool", {"kernel": 1, "stride": 2, "legacy_pad": 3}, "a last window that would lie outside of the picture"),
        ("AveragePool", {"kernel": 2, "dilation": 2}, "has dilations, which only MaxPool and convolutions have"),
    ],
)
def test_windows_that_are_invalid_are_refused(kind, arguments, message):
    with pytest.raises(TranslationError) as raised:
        one(kind, np.ones((1, 1, 4, 4), np.float32), **arguments)

    assert message in str(raised.value)


def test_the_old_rules_need_the_size_of_the_picture():
    net = Net("x")
    net.op("Transpose", "x", "turned", axes=[2, 1, 0])
    net.op("MaxPool", "turned", "y", kernels=[2], legacy_pad=3)

    with pytest.raises(TranslationError, match="has legacy_pad 3, which needs the size of the picture"):
        net.gives("y").translated(x=np.ones((5, 1, 4), np.float32))

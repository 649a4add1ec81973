"""Convolutions in every notation of their arguments, against torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one

WINDOWS = [
    ({"kernel": 3}, {}),
    ({"kernel": 3, "pad": 1, "stride": 2}, {"padding": 1, "stride": 2}),
    ({"kernels": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}, {"padding": (1, 0), "stride": (2, 1)}),
    (
        {"kernel_h": 3, "kernel_w": 2, "stride_h": 1, "stride_w": 2, "pad_t": 2, "pad_l": 1, "pad_b": 2, "pad_r": 1},
        {"padding": (2, 1), "stride": (1, 2)},
    ),
    ({"kernel": 3, "dilation": 2, "pad": 2}, {"padding": 2, "dilation": 2}),
    ({"kernel": 3, "dilation_h": 2, "dilation_w": 1}, {"dilation": (2, 1)}),
    ({"kernel": 3, "dilations": [1, 2]}, {"dilation": (1, 2)}),
    ({"kernel": 3, "group": 2}, {"groups": 2}),
    ({"kernel": 3, "group": 4, "pad": 1}, {"groups": 4, "padding": 1}),
    ({"kernel": 3, "legacy_pad": 1}, {}),
    ({"kernel": 3, "legacy_pad": 2}, {"padding": "same"}),
]


def weights_for(arguments, channels, out, random):
    kernel = arguments.get("kernels") or [arguments.get("kernel_h", 0), arguments.get("kernel_w", 0)]
    if "kernel" in arguments:
        kernel = [arguments["kernel"]] * 2
    shape = (out, channels // arguments.get("group", 1), *kernel)
    return random.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("arguments", "expected"), WINDOWS)
def test_a_convolution_has_its_window_in_every_notation(order, arguments, expected, random):
    sent = random.standard_normal((2, 4, 9, 8)).astype(np.float32)
    weights = weights_for(arguments, 4, 8, random)
    bias = random.standard_normal(8).astype(np.float32)
    target = functional.conv2d(*map(torch.from_numpy, (sent, weights, bias)), **expected).numpy()

    if order == "NCHW":
        answer = one("Conv", sent, weights, bias, constants=[1, 2], **arguments)
    else:
        last = weights.transpose(0, 2, 3, 1)
        output = one("Conv", sent.transpose(0, 2, 3, 1), last, bias, constants=[1], order=order, **arguments)
        answer = output.transpose(0, 3, 1, 2)

    np.testing.assert_allclose(answer, target, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "axes"), [("Conv1D", 1), ("Conv2D", 2), ("Conv3D", 3), ("Conv", 1), ("Conv", 3)])
def test_pictures_have_as_many_axes_as_they_like(kind, axes, random):
    sent = random.standard_normal((2, 3, *[6] * axes)).astype(np.float32)
    weights = random.standard_normal((4, 3, *[2] * axes)).astype(np.float32)
    convolve = getattr(functional, f"conv{axes}d")

    answer = one(kind, sent, weights, kernels=[2] * axes, strides=[2] * axes, pads=[1] * 2 * axes)

    target = convolve(torch.from_numpy(sent), torch.from_numpy(weights), stride=2, padding=1).numpy()
    np.testing.assert_allclose(answer, target, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"kernel": 2, "stride": 2}, {"stride": 2}),
        ({"kernel": 3, "stride": 2, "pad": 1, "adj": 1}, {"stride": 2, "padding": 1, "output_padding": 1}),
        ({"kernel": 3, "stride": 2, "adj_h": 1, "adj_w": 0}, {"stride": 2, "output_padding": (1, 0)}),
        ({"kernel": 3, "strides": [2, 2], "adjs": [0, 1]}, {"stride": 2, "output_padding": (0, 1)}),
        ({"kernel": 2, "group": 2}, {"groups": 2}),
    ],
)
def test_a_transposed_convolution(order, arguments, expected, random):
    sent = random.standard_normal((2, 4, 5, 6)).astype(np.float32)
    out = 6 // expected.get("groups", 1)
    weights = random.standard_normal((4, out, arguments["kernel"], arguments["kernel"])).astype(np.float32)
    bias = random.standard_normal(6).astype(np.float32)
    target = functional.conv_transpose2d(*map(torch.from_numpy, (sent, weights, bias)), **expected).numpy()

    if order == "NCHW":
        answer = one("ConvTranspose", sent, weights, bias, **arguments)
    else:
        turned = [array.transpose(0, 2, 3, 1) for array in (sent, weights)]
        answer = one("ConvTranspose", *turned, bias, order=order, **arguments).transpose(0, 3, 1, 2)

    np.testing.assert_allclose(answer, target, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": 5}, "has the kernel [5, 5] and weights for [3, 3]"),
        ({"kernels": [3]}, "has 1 sizes of its kernel for 2 axes"),
        ({"kernel": 3, "pads": [1, 1]}, "has 2 pads for 2 axes; it takes 4"),
        ({"kernel": 3, "pad_t": 1}, "has pads for some sides only; write pad_t, pad_l, pad_b and pad_r"),
        ({"kernel": 3, "legacy_pad": 7}, "has legacy_pad 7; there are 0 to 3"),
        ({"kernel": 3, "legacy_pad": 2, "pad": 1}, "has both legacy_pad and pads"),
        ({"kernel": 3, "legacy_pad": 2, "stride": 5}, "has strides that leap over parts of the picture"),
        ({"kernel": 3, "order": "CHWN"}, "has the order 'CHWN'; there are NCHW and NHWC"),
        ({"kernel": 3, "group": 2}, "has pictures of 2 channels, and weights for 4 (2 in each of 2 groups)"),
    ],
)
def test_windows_that_are_invalid_are_refused(arguments, message):
    sent, weights = np.ones((1, 2, 8, 8), np.float32), np.ones((4, 2, 3, 3), np.float32)

    with pytest.raises(TranslationError) as raised:
        one("Conv", sent, weights, **arguments)

    assert message in str(raised.value)

"""Pictures made larger, padded, or with their channels in another order, against torch and numpy."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one


@pytest.fixture
def picture(random):
    return random.standard_normal((2, 4, 5, 6)).astype(np.float32)


def in_order(order, kind, picture, *others, **arguments):
    if order == "NCHW":
        return one(kind, picture, *others, **arguments)
    return one(kind, picture.transpose(0, 2, 3, 1), *others, order=order, **arguments).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize("factors", [(2.0, 2.0), (2.0, 3.0), (1.5, 1.0), (0.5, 0.5)])
def test_a_picture_is_resized_to_the_nearest(order, factors, picture):
    answer = in_order(order, "ResizeNearest", picture, height_scale=factors[0], width_scale=factors[1])

    expected = functional.interpolate(torch.from_numpy(picture), scale_factor=factors, mode="nearest").numpy()
    np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize("factors", [(2.0, 2.0), (2.0, 3.0)])
def test_a_picture_is_resized_between_its_corners(order, factors, picture):
    answer = in_order(order, "UpsampleBilinear", picture, height_scale=factors[0], width_scale=factors[1])

    size = [int(side * factor) for side, factor in zip(picture.shape[2:], factors, strict=True)]
    expected = functional.interpolate(torch.from_numpy(picture), size, mode="bilinear", align_corners=True).numpy()
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


def test_factors_may_be_an_input(picture):
    answer = one("ResizeNearest", picture, np.array([2, 1], np.float32), constants=[1])

    assert answer.shape == (2, 4, 10, 6)
    with pytest.raises(TranslationError, match="takes its factors from values that are computed"):
        one("ResizeNearest", picture, np.array([2, 1], np.float32))


@pytest.mark.parametrize(("arguments", "factor"), [({}, 2), ({"scale": 3}, 3)])
def test_pixels_are_repeated(arguments, factor, picture):
    answer = one("UpsampleNearest", picture, **arguments)

    np.testing.assert_array_equal(answer, picture.repeat(factor, 2).repeat(factor, 3))


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_a_picture_is_padded(order, mode, picture):
    sides = {"pad_t": 1, "pad_l": 2, "pad_b": 0, "pad_r": 3}

    answer = in_order(order, "PadImage", picture, mode=mode, **sides)

    np.testing.assert_array_equal(answer, np.pad(picture, [(0, 0), (0, 0), (1, 0), (2, 3)], mode))


def test_a_picture_is_padded_with_a_value(picture):
    answer = one("PadImage", picture, pad=1, value=7.0)

    expected = np.pad(picture, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=7)
    np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_channels_of_all_groups_stand_in_turn(order, groups, picture):
    answer = in_order(order, "ChannelShuffle", picture, group=groups)

    np.testing.assert_array_equal(answer, functional.channel_shuffle(torch.from_numpy(picture), groups).numpy())


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("PadImage", {"mode": "wrap", "pad": 1}, "has the mode 'wrap'; there are constant, reflect, edge"),
        ("ChannelShuffle", {"group": 3}, "cannot put 4 channels into 3 groups"),
    ],
)
def test_what_cannot_be_done_to_a_picture_is_refused(kind, arguments, message, picture):
    with pytest.raises(TranslationError) as raised:
        one(kind, picture, **arguments)

    assert message in str(raised.value)

"""Nets over pictures and rows of which every size varies."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from naiad_caffe2.net import GivenInput, translate

from .nets import Net, run

FLOAT = 1


def over(kind, sent, shape, *weights, **arguments):
    """What an operator gives for an input whose sizes are names in `shape`, and the shape that is known before."""
    net = Net("x")
    for index, array in enumerate(weights):
        net.weights(f"w{index}", array)
    net.op(kind, ["x", *(f"w{index}" for index in range(len(weights)))], "y", **arguments)
    translated = translate(net.gives("y").net, net.init, {"x": GivenInput(FLOAT, shape)})
    return run(translated, {"x": sent})["y"], translated.outputs["y"].shape


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 1, 1), (5, 1, 2)])
def test_rows_of_any_number_go_through_a_layer(sizes, random):
    sent = random.standard_normal((*sizes[:2], 4)).astype(np.float32)
    weights, bias = random.standard_normal((5, 4)).astype(np.float32), np.ones(5, np.float32)

    answer, shape = over("FC", sent, ("n", "m", 4), weights, bias, axis=2)

    np.testing.assert_allclose(answer, sent @ weights.T + bias, rtol=1e-5, atol=1e-5)
    assert shape == ("n", "m", 5)


def test_softmax_gives_the_dims_that_it_takes(random):
    sent = random.standard_normal((2, 3, 4)).astype(np.float32)

    answer, shape = over("Softmax", sent, ("n", "c", "m"))

    expected = torch.softmax(torch.from_numpy(sent.reshape(2, 12)), 1).numpy().reshape(2, 3, 4)
    np.testing.assert_allclose(answer, expected, rtol=1e-5)
    assert shape == ("n", "c", "m")


@pytest.mark.parametrize(("kind", "arguments"), [("ChannelShuffle", {"group": 2}), ("GroupNorm", {"group": 2})])
def test_channels_of_pictures_of_any_size(kind, arguments, random):
    sent = random.standard_normal((2, 4, 5, 6)).astype(np.float32)
    weights = [] if kind == "ChannelShuffle" else [np.ones(4, np.float32), np.zeros(4, np.float32)]

    answer, shape = over(kind, sent, ("n", 4, "h", "w"), *weights, **arguments)

    picture = torch.from_numpy(sent)
    expected = functional.channel_shuffle(picture, 2) if kind == "ChannelShuffle" else functional.group_norm(picture, 2)
    np.testing.assert_allclose(answer, expected.numpy(), rtol=1e-4, atol=1e-5)
    assert shape == ("n", 4, "h", "w")


def test_pictures_of_any_size_are_pooled_and_convolved(random):
    sent = random.standard_normal((2, 3, 7, 9)).astype(np.float32)
    weights = random.standard_normal((4, 3, 3, 3)).astype(np.float32)

    answer, shape = over("Conv", sent, ("n", 3, "h", "w"), weights, kernel=3, stride=2, legacy_pad=2)

    padded = functional.pad(torch.from_numpy(sent), (1, 1, 1, 1))
    np.testing.assert_allclose(
        answer, functional.conv2d(padded, torch.from_numpy(weights), stride=2).numpy(), 1e-4, 1e-4
    )
    assert (shape[0], shape[1], len(shape)) == ("n", 4, 4)


@pytest.mark.parametrize(
    ("kind", "arguments", "shape"), [("MergeDim", {}, (6, 4)), ("PrependDim", {"dim_size": 2}, (2, 1, 3, 4))]
)
def test_dims_are_merged_and_split_whatever_their_sizes(kind, arguments, shape):
    sent = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    answer, _ = over(kind, sent, ("n", "m", "k"), **arguments)

    assert answer.tolist() == sent.reshape(shape).tolist()

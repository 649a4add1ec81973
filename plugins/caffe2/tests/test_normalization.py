"""Bringing values to a common scale, against torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from naiad_caffe2.translation.arguments import TranslationError

from .nets import Net, one


def floats(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


def in_order(order, kind, picture, *others, **arguments):
    """What an operator makes of a picture, given and taken in NCHW."""
    if order == "NCHW":
        return one(kind, picture, *others, **arguments)
    perm = (0, *range(2, picture.ndim), 1)
    answer = one(kind, picture.transpose(perm), *others, order="NHWC", **arguments)
    return answer.transpose(0, picture.ndim - 1, *range(1, picture.ndim - 1))


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("shape", "arguments", "axis"),
    [((3, 4), {}, 1), ((3, 4, 2), {}, 1), ((3, 4, 2), {"axis": 2}, 2), ((3, 4, 2), {"axis": -1}, 2), ((4,), {}, 0)],
)
def test_softmax_is_over_all_dims_from_an_axis_on(kind, shape, arguments, axis, random):
    sent = floats(random, *shape)
    rows = torch.from_numpy(sent.reshape(*shape[:axis], -1))
    expected = (torch.softmax if kind == "Softmax" else torch.log_softmax)(rows, -1).numpy().reshape(shape)

    np.testing.assert_allclose(one(kind, sent, **arguments), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_responses_are_normalised(order, size, random):
    sent = floats(random, 2, 6, 3, 3)

    answer = in_order(order, "LRN", sent, size=size, alpha=0.1, beta=0.75, bias=2.0)

    expected = functional.local_response_norm(torch.from_numpy(sent), size, 0.1, 0.75, 2.0).numpy()
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize("epsilon", [1e-5, 0.1])
def test_a_batch_is_normalised_with_kept_statistics(order, epsilon, random):
    sent = floats(random, 2, 3, 4, 5)
    scale, bias, mean = (floats(random, 3) for _ in range(3))
    variance = random.uniform(0.5, 2, 3).astype(np.float32)

    answer = in_order(order, "SpatialBN", sent, scale, bias, mean, variance, is_test=1, epsilon=epsilon, momentum=0.9)

    statistics = map(torch.from_numpy, (mean, variance, scale, bias))
    expected = functional.batch_norm(torch.from_numpy(sent), *statistics, eps=epsilon).numpy()
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_each_picture_is_normalised(order, random):
    sent, scale, bias = floats(random, 2, 3, 4, 5), floats(random, 3), floats(random, 3)

    answer = in_order(order, "InstanceNorm", sent, scale, bias, epsilon=0.01)

    tensors = {"weight": torch.from_numpy(scale), "bias": torch.from_numpy(bias)}
    expected = functional.instance_norm(torch.from_numpy(sent), **tensors, eps=0.01).numpy()
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_groups_of_channels_are_normalised(order, random):
    sent, scale, bias = floats(random, 2, 6, 4, 5), floats(random, 6), floats(random, 6)

    answer = in_order(order, "GroupNorm", sent, scale, bias, group=3)

    expected = functional.group_norm(*map(torch.from_numpy, (sent,)), 3, *map(torch.from_numpy, (scale, bias))).numpy()
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_a_layer_is_normalised_and_tells_mean_and_deviation(axis, random):
    sent = floats(random, 2, 3, 4)
    over = tuple(range(axis % 3, 3))

    answer, mean, deviation = one("LayerNorm", sent, outputs=3, axis=axis, epsilon=0.01)

    expected = functional.layer_norm(torch.from_numpy(sent), sent.shape[axis % 3 :], eps=0.01).numpy()
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean[..., 0], sent.mean(over), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(deviation[..., 0], np.sqrt(sent.var(over) + 0.01), rtol=1e-4, atol=1e-5)


def test_a_layer_may_have_factors_and_summands(random):
    sent, scale, bias = floats(random, 2, 4), floats(random, 4), floats(random, 4)

    answer = one("LayerNorm", sent, scale, bias, elementwise_affine=1)

    expected = functional.layer_norm(*map(torch.from_numpy, (sent,)), (4,), *map(torch.from_numpy, (scale, bias)))
    np.testing.assert_allclose(answer, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "p"), [("Normalize", 2), ("NormalizeL1", 1)])
@pytest.mark.parametrize("arguments", [{}, {"axis": 0}, {"axis": 1}])
def test_rows_are_brought_to_length_one(kind, p, arguments, random):
    sent = floats(random, 3, 4)
    sent[0] = 0

    expected = functional.normalize(torch.from_numpy(sent), p, arguments.get("axis", -1)).numpy()

    np.testing.assert_allclose(one(kind, sent, **arguments), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_channels_have_factors_and_summands(order, random):
    sent, scale, bias = floats(random, 2, 3, 4, 5), floats(random, 3), floats(random, 3)

    answer = in_order(order, "AffineChannel", sent, scale, bias)

    np.testing.assert_allclose(answer, sent * scale[:, None, None] + bias[:, None, None], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "count", "arguments", "message"),
    [
        ("SpatialBN", 5, {}, "SpatialBN of the net is made"),
        ("LRN", 1, {"size": 2, "beta": 0.5}, "has size 2, alpha 0, beta 0.5; size must be odd, all must be above 0"),
        ("LayerNorm", 1, {"elementwise_affine": 1}, "has elementwise_affine, and not the two inputs for it"),
        ("Softmax", 1, {"axis": 4}, "has axis 4, and its input 'a' has 4 dims"),
    ],
)
def test_arguments_that_are_invalid_are_refused(kind, count, arguments, message):
    sent = [np.ones((1, 2, 2, 2), np.float32), *[np.ones(2, np.float32)] * (count - 1)]

    with pytest.raises(TranslationError) as raised:
        one(kind, *sent, **arguments)

    assert message in str(raised.value)


def test_outputs_for_training_may_be_there_and_not_be_read():
    net = Net("x")
    net.op("LRN", "x", "y scale", size=3, alpha=1.0, beta=0.5)
    sent = np.ones((1, 2, 2, 2), np.float32)

    assert net.gives("y").run(x=sent)["y"].shape == (1, 2, 2, 2)
    net.op("Relu", "scale", "z")
    with pytest.raises(TranslationError, match="reads 'scale', output 1 of operator 0 LRN of the net, which naiad-caf"):
        net.gives("z").run(x=sent)

"""Whole networks of the model zoo's kinds, small and made in code, against torch."""

import numpy as np
import torch
from torch.nn import functional

from .nets import Net


class Weights:
    """Random weights, in the net and for torch."""

    def __init__(self, net, random):
        self._net = net
        self._random = random
        self.of = {}

    def make(self, name, *shape, low=-0.5, high=0.5):
        array = self._random.uniform(low, high, shape).astype(np.float32)
        self.of[name] = torch.from_numpy(array)
        return self._net.weights(name, array)


def test_a_network_like_alexnet(random):
    """Groups, local responses, Caffe's pooling, dropout, layers written over, and a second output that is not read."""
    net = Net("data")
    w = Weights(net, random)
    for name, shape in (("conv1", (8, 3, 5, 5)), ("conv2", (12, 4, 3, 3)), ("conv3", (12, 12, 3, 3))):
        w.make(f"{name}_w", *shape)
        w.make(f"{name}_b", shape[0])
    for name, shape in (("fc6", (20, 12 * 4 * 4)), ("fc8", (10, 20))):
        w.make(f"{name}_w", *shape, low=-0.1, high=0.1)
        w.make(f"{name}_b", shape[0])
    net.op("Conv", "data conv1_w conv1_b", "conv1", kernel=5, stride=2, pad=0)
    net.op("Relu", "conv1", "conv1")
    net.op("LRN", "conv1", "norm1 _norm1_scale", size=5, alpha=1e-2, beta=0.75, bias=1.0)
    net.op("MaxPool", "norm1", "pool1", kernel=3, stride=2, pad=0, legacy_pad=3)
    net.op("Conv", "pool1 conv2_w conv2_b", "conv2", kernel=3, stride=1, pad=1, group=2)
    net.op("Relu", "conv2", "conv2")
    net.op("Conv", "conv2 conv3_w conv3_b", "conv3", kernel=3, stride=1, pad=1, group=1)
    net.op("Relu", "conv3", "conv3")
    net.op("MaxPool", "conv3", "pool3", kernel=3, stride=2, pad=0, legacy_pad=3)
    net.op("FC", "pool3 fc6_w fc6_b", "fc6")
    net.op("Relu", "fc6", "fc6")
    net.op("Dropout", "fc6", "fc6 _fc6_mask", ratio=0.5, is_test=1)
    net.op("FC", "fc6 fc8_w fc8_b", "fc8")
    net.op("Softmax", "fc8", "prob")
    data = random.standard_normal((3, 3, 36, 36)).astype(np.float32)

    answer = net.gives("prob").run(data=data)["prob"]

    x = functional.relu(functional.conv2d(torch.from_numpy(data), w.of["conv1_w"], w.of["conv1_b"], 2))
    x = functional.local_response_norm(x, 5, 1e-2, 0.75, 1.0)
    x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
    x = functional.relu(functional.conv2d(x, w.of["conv2_w"], w.of["conv2_b"], 1, 1, groups=2))
    x = functional.relu(functional.conv2d(x, w.of["conv3_w"], w.of["conv3_b"], 1, 1))
    x = functional.max_pool2d(x, 3, 2, ceil_mode=True).flatten(1)
    x = functional.relu(functional.linear(x, w.of["fc6_w"], w.of["fc6_b"]))
    x = functional.softmax(functional.linear(x, w.of["fc8_w"], w.of["fc8_b"]), 1)
    assert answer.shape == (3, 10)
    np.testing.assert_allclose(answer, x.numpy(), rtol=1e-3, atol=1e-5)


def normalised(net, w, source, name, channels, **arguments):
    """Statistics that were kept, written over the blob itself."""
    for part, low, high in (("s", 0.5, 1.5), ("b", -0.5, 0.5), ("rm", -0.5, 0.5), ("riv", 0.5, 1.5)):
        w.make(f"{name}_{part}", channels, low=low, high=high)
    inputs = f"{source} {name}_s {name}_b {name}_rm {name}_riv"
    net.op("SpatialBN", inputs, source, is_test=1, epsilon=1e-3, **arguments)


def batch_norm(w, x, name):
    return functional.batch_norm(
        x, w.of[f"{name}_rm"], w.of[f"{name}_riv"], w.of[f"{name}_s"], w.of[f"{name}_b"], eps=1e-3
    )


def test_a_network_like_resnet(random):
    """Kept statistics, sums that are written over, a shortcut with a stride, and pooling of whole pictures."""
    net = Net("data")
    w = Weights(net, random)
    for name, shape in (("c1", (8, 3, 7, 7)), ("a1", (8, 8, 3, 3)), ("a2", (16, 8, 3, 3)), ("short", (16, 8, 1, 1))):
        w.make(f"{name}_w", *shape, low=-0.2, high=0.2)
    w.make("pred_w", 5, 16)
    w.make("pred_b", 5)
    net.op("Conv", "data c1_w", "c1", kernel=7, stride=2, pad=3, order="NCHW", exhaustive_search=1)
    normalised(net, w, "c1", "c1bn", 8, order="NCHW")
    net.op("Relu", "c1", "c1", order="NCHW")
    net.op("MaxPool", "c1", "p1", kernel=3, stride=2, pad=1)
    net.op("Conv", "p1 a1_w", "a1", kernel=3, pad=1)
    normalised(net, w, "a1", "a1bn", 8)
    net.op("Relu", "a1", "a1")
    net.op("Conv", "a1 a2_w", "a2", kernel=3, pad=1, stride=2)
    normalised(net, w, "a2", "a2bn", 16)
    net.op("Conv", "p1 short_w", "short", kernel=1, stride=2)
    net.op("Sum", "a2 short", "a2")
    net.op("Relu", "a2", "a2")
    net.op("AveragePool", "a2", "final", global_pooling=1)
    net.op("FC", "final pred_w pred_b", "pred")
    net.op("Softmax", "pred", "softmax")
    data = random.standard_normal((2, 3, 32, 32)).astype(np.float32)

    answer = net.gives("softmax").run(data=data)["softmax"]

    x = functional.relu(batch_norm(w, functional.conv2d(torch.from_numpy(data), w.of["c1_w"], None, 2, 3), "c1bn"))
    p = functional.max_pool2d(x, 3, 2, 1)
    x = functional.relu(batch_norm(w, functional.conv2d(p, w.of["a1_w"], None, 1, 1), "a1bn"))
    x = batch_norm(w, functional.conv2d(x, w.of["a2_w"], None, 2, 1), "a2bn")
    x = functional.relu(x + functional.conv2d(p, w.of["short_w"], None, 2)).mean((2, 3))
    x = functional.softmax(functional.linear(x, w.of["pred_w"], w.of["pred_b"]), 1)
    np.testing.assert_allclose(answer, x.numpy(), rtol=1e-3, atol=1e-5)


def test_a_network_like_mobilenet_with_its_channels_last(random):
    """Convolutions of each channel alone, in NHWC, with old broadcasts of factors and summands over the channels."""
    net = Net("data")
    w = Weights(net, random)
    for name, shape in (("stem", (8, 3, 3, 3)), ("deep", (8, 3, 3, 1)), ("wide", (16, 1, 1, 8))):
        w.make(f"{name}_w", *shape)
    for name, channels in (("stem", 8), ("deep", 8), ("wide", 16)):
        w.make(f"{name}_f", channels)
        w.make(f"{name}_s", channels)
    w.make("fc_w", 4, 16)
    w.make("fc_b", 4)
    last = {"order": "NHWC"}
    blob = "data"
    for name, arguments in (
        ("stem", {"kernel": 3, "stride": 2, "legacy_pad": 2}),
        ("deep", {"kernel": 3, "pad": 1, "group": 8}),
        ("wide", {"kernel": 1}),
    ):
        net.op("Conv", f"{blob} {name}_w", name, **arguments, **last)
        net.op("Mul", f"{name} {name}_f", name, broadcast=1, axis_str="C", **last)
        net.op("Add", f"{name} {name}_s", name, broadcast=1, axis=3)
        net.op("ReluN", name, name, n=6.0)
        blob = name
    net.op("AveragePool", "wide", "pooled", global_pooling=1, **last)
    net.op("Squeeze", "pooled", "flat", dims=[1, 2])
    net.op("FC", "flat fc_w fc_b", "y")
    net.op("ArgMax", "y", "best", keepdims=0)
    data = random.standard_normal((2, 9, 9, 3)).astype(np.float32)

    answer = net.gives("y", "best").run(data=data)

    def kernels(name):
        return w.of[f"{name}_w"].permute(0, 3, 1, 2)

    def scaled(x, name):
        return functional.relu6(x * w.of[f"{name}_f"][:, None, None] + w.of[f"{name}_s"][:, None, None])

    x = torch.from_numpy(data).permute(0, 3, 1, 2)
    x = scaled(functional.conv2d(functional.pad(x, (1, 1, 1, 1)), kernels("stem"), None, 2), "stem")
    x = scaled(functional.conv2d(x, kernels("deep"), None, 1, 1, groups=8), "deep")
    x = scaled(functional.conv2d(x, kernels("wide")), "wide").mean((2, 3))
    x = functional.linear(x, w.of["fc_w"], w.of["fc_b"]).numpy()
    np.testing.assert_allclose(answer["y"], x, rtol=1e-3, atol=1e-5)
    assert answer["best"].tolist() == x.argmax(1).tolist()


def test_a_network_that_reads_texts(random):
    """Bags of words of several lengths, beside numbers of their own, through layers to a class."""
    net = Net("words", "lengths", "numbers")
    w = Weights(net, random)
    for name, shape in (("table", (50, 6)), ("h_w", (8, 9)), ("h_b", (8,)), ("o_w", (2, 8)), ("o_b", (2,))):
        w.make(name, *shape)
    net.op("SparseLengthsSum", "table words lengths", "bags")
    net.op("Normalize", "bags", "bags", axis=1)
    net.op("Concat", "bags numbers", "features _lengths", axis=1)
    net.op("FC", "features h_w h_b", "hidden")
    net.op("Tanh", "hidden", "hidden")
    net.op("FC", "hidden o_w o_b", "scores")
    net.op("LogSoftmax", "scores", "scores")
    net.op("TopK", "scores", "best place", k=1)
    words, lengths = np.array([3, 14, 15, 9, 26, 5], np.int64), np.array([2, 0, 4], np.int32)
    numbers = random.standard_normal((3, 3)).astype(np.float32)

    answer = net.gives("scores", "place").run(words=words, lengths=lengths, numbers=numbers)

    starts = torch.tensor([0, 2, 2])
    bags = functional.normalize(functional.embedding_bag(torch.from_numpy(words), w.of["table"], starts, mode="sum"))
    features = torch.cat([bags, torch.from_numpy(numbers)], 1)
    hidden = torch.tanh(functional.linear(features, w.of["h_w"], w.of["h_b"]))
    scores = functional.log_softmax(functional.linear(hidden, w.of["o_w"], w.of["o_b"]), 1).numpy()
    np.testing.assert_allclose(answer["scores"], scores, rtol=1e-4, atol=1e-5)
    assert answer["place"].tolist() == scores.argmax(1, keepdims=True).tolist()

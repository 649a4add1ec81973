"""Functions of single elements, against torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one

SIGNED = {
    "Abs": torch.abs,
    "Atan": torch.atan,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Cube": lambda x: x**3,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Negative": torch.neg,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Softplus": functional.softplus,
    "Softsign": functional.softsign,
    "Sqr": torch.square,
    "Swish": functional.silu,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
    "Cbrt": lambda x: torch.from_numpy(np.cbrt(x.numpy())),
    "Alias": torch.clone,
    "Copy": torch.clone,
    "CopyCPUToGPU": torch.clone,
    "CopyFromCPUInput": torch.clone,
    "CopyGPUToCPU": torch.clone,
    "EnsureCPUOutput": torch.clone,
    "EnsureDense": torch.clone,
    "StopGradient": torch.clone,
}
POSITIVE = {
    "Log": torch.log,
    "Reciprocal": torch.reciprocal,
    "Rsqrt": torch.rsqrt,
    "Sqrt": torch.sqrt,
    "Acos": torch.acos,
    "Asin": torch.asin,
}
WITH_ARGUMENTS = [
    ("ReluN", {}, functional.relu6),
    ("ReluN", {"n": 0.5}, lambda x: torch.clamp(x, 0, 0.5)),
    ("LeakyRelu", {}, lambda x: functional.leaky_relu(x, 0.01)),
    ("LeakyRelu", {"alpha": 0.3}, lambda x: functional.leaky_relu(x, 0.3)),
    ("Elu", {}, functional.elu),
    ("Elu", {"alpha": 2.0}, lambda x: functional.elu(x, 2.0)),
    ("Selu", {}, functional.selu),
    ("Gelu", {}, functional.gelu),
    ("Gelu", {"fast_gelu": 1}, lambda x: functional.gelu(x, approximate="tanh")),
    ("HardSigmoid", {}, lambda x: torch.clamp(0.2 * x + 0.5, 0, 1)),
    ("HardSigmoid", {"alpha": 0.5, "beta": 0.25}, lambda x: torch.clamp(0.5 * x + 0.25, 0, 1)),
    ("ThresholdedRelu", {}, lambda x: functional.threshold(x, 1.0, 0.0)),
    ("ThresholdedRelu", {"alpha": 0.5}, lambda x: functional.threshold(x, 0.5, 0.0)),
    ("Clip", {}, torch.clone),
    ("Clip", {"min": -0.5}, lambda x: torch.clamp(x, min=-0.5)),
    ("Clip", {"min": -0.5, "max": 1}, lambda x: torch.clamp(x, -0.5, 1)),
    ("Scale", {"scale": 2.5}, lambda x: x * 2.5),
    ("Dropout", {"is_test": 1, "ratio": 0.9}, torch.clone),
    ("Relu", {"order": "NHWC", "engine": "CUDNN", "cudnn_exhaustive_search": 1}, torch.relu),
]


def check(kind, sent, expected, **arguments):
    answer = one(kind, sent, **arguments)

    assert answer.dtype == sent.dtype
    np.testing.assert_allclose(answer, expected(torch.from_numpy(sent)).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", SIGNED)
def test_a_function_of_any_number(kind, random):
    check(kind, random.standard_normal((3, 4)).astype(np.float32), SIGNED[kind])


@pytest.mark.parametrize("kind", POSITIVE)
def test_a_function_of_a_positive_number(kind, random):
    check(kind, random.uniform(0.05, 0.95, (3, 4)).astype(np.float32), POSITIVE[kind])


@pytest.mark.parametrize(("kind", "arguments", "expected"), WITH_ARGUMENTS)
def test_a_function_with_arguments(kind, arguments, expected, random):
    check(kind, 2 * random.standard_normal((3, 4)).astype(np.float32), expected, **arguments)


def test_logit_keeps_from_the_ends():
    sent = np.array([0.0, 0.25, 1.0], np.float32)

    answer = one("Logit", sent, eps=0.1)

    np.testing.assert_allclose(answer, np.log([1 / 9, 1 / 3, 9]), rtol=1e-5)


def test_nan_is_replaced():
    answer = one("ReplaceNaN", np.array([1, np.nan], np.float32), value=7.0)

    assert answer.tolist() == [1, 7]


def test_not_turns_truth_round():
    assert one("Not", np.array([True, False])).tolist() == [False, True]


@pytest.mark.parametrize(("order", "channel"), [("NCHW", 1), ("NHWC", 3)])
def test_prelu_has_a_slope_for_each_channel_or_one_for_all(order, channel, random):
    sent = random.standard_normal((2, 3, 3, 3)).astype(np.float32)
    slopes = np.array([0.1, 0.2, 0.3], np.float32)
    laid = slopes.reshape([3 if axis == channel else 1 for axis in range(4)])

    answer = one("PRelu", sent, slopes, order=order)
    alike = one("PRelu", sent, slopes[:1], order=order)

    np.testing.assert_allclose(answer, np.where(sent < 0, sent * laid, sent), rtol=1e-6)
    np.testing.assert_allclose(alike, np.where(sent < 0, sent * slopes[0], sent), rtol=1e-6)


@pytest.mark.parametrize(
    ("to", "dtype"),
    [(1, "float32"), (2, "int32"), (5, "bool"), (6, "uint8"), (10, "int64"), (12, "float16"), ("DOUBLE", "float64")],
)
def test_a_cast_takes_a_number_or_a_name(to, dtype):
    answer = one("Cast", np.array([0, 1.75, 3], np.float32), to=to)

    assert answer.dtype == dtype
    assert answer.tolist() == np.array([0, 1.75, 3], np.float32).astype(dtype).tolist()


def test_half_precision_goes_both_ways():
    sent = np.array([0.5, 1.1], np.float32)

    half = one("FloatToHalf", sent)

    assert half.dtype == np.float16
    assert one("HalfToFloat", half).tolist() == sent.astype(np.float16).astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("Dropout", {"ratio": 0.5}, "operator 0 Dropout of the net is made for training"),
        ("Cast", {}, "says nothing of the type to cast to"),
        ("Cast", {"to": "STRING"}, "casts to a type that is none of FLOAT, INT32"),
        ("LeakyRelu", {"alpha": "much"}, "argument 'alpha' of operator 0 LeakyRelu of the net must be a number"),
        ("LeakyRelu", {"alhpa": 0.1}, "unknown arguments: 'alhpa'; did you mean 'alpha'?"),
        ("Relu", {"spin": 1}, "unknown arguments: 'spin'; this operator has no arguments"),
    ],
)
def test_arguments_that_are_invalid_are_refused(kind, arguments, message):
    with pytest.raises(TranslationError) as raised:
        one(kind, np.ones(2, np.float32), **arguments)

    assert message in str(raised.value)

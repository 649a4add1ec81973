"""Operators that make values out of their arguments."""

import struct

import numpy as np
import pytest

from naiad_caffe2.messages import floats_of, message_class
from naiad_caffe2.translation.arguments import TranslationError
from naiad_caffe2.translation.operators.fills import RANDOM

from .nets import Net


def filled(kind, inputs="", feeds=None, **arguments):
    net = Net(*(feeds or {}))
    net.op(kind, inputs, "y", **arguments)
    return net.gives("y").run(**(feeds or {}))["y"]


@pytest.mark.parametrize(
    ("kind", "values", "dtype"),
    [
        ("GivenTensorFill", [1.5, 2.5], "float32"),
        ("GivenTensorDoubleFill", [1.5, 2.5], "float64"),
        ("GivenTensorIntFill", [1, -2], "int32"),
        ("GivenTensorInt16Fill", [1, -2], "int16"),
        ("GivenTensorInt64Fill", [1, -(2**40)], "int64"),
        ("GivenTensorBoolFill", [1, 0], "bool"),
    ],
)
def test_values_are_given(kind, values, dtype):
    answer = filled(kind, shape=[2, 1], values=values)

    assert (answer.dtype, answer.shape, answer.ravel().tolist()) == (dtype, (2, 1), values)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("behind", ["", "3001", "520162"], ids=["nothing", "ints", "an unknown field"])
def test_floats_of_a_file_are_read_as_they_are_written(packed, behind):
    numbers = [1.5, -2.25, 3.0]
    one_by_one = b"".join(b"\x2d" + struct.pack("<f", number) for number in numbers)
    together = b"\x2a\x0c" + struct.pack("<3f", *numbers)
    content = b"\x0a\x06values" + (together if packed else one_by_one) + bytes.fromhex(behind)

    actual = floats_of(message_class("Argument").FromString(content))

    assert (actual.dtype, actual.tolist()) == (np.float32, numbers)


def test_bytes_are_given_as_a_string():
    net = Net()
    operator = net.net.op.add(type="GivenTensorByteStringToUInt8Fill", output=["y"])
    operator.arg.add(name="shape", ints=[3])
    operator.arg.add(name="values", strings=[b"\x00\x7f\xff"])

    answer = net.gives("y").run()["y"]

    assert (answer.dtype, answer.tolist()) == (np.uint8, [0, 127, 255])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"shape": [2], "value": 1.5}, np.full(2, 1.5, np.float32)),
        ({"shape": [2], "value": 3}, np.full(2, 3, np.int64)),
        ({"shape": [2], "value": 3, "dtype": 2}, np.full(2, 3, np.int32)),
        ({"shape": [2], "value": 1, "dtype": 5}, np.full(2, True)),
        ({"shape": [2]}, np.zeros(2, np.float32)),
        ({"value": 1.5}, np.array(1.5, np.float32)),
    ],
)
def test_a_constant_is_repeated(arguments, expected):
    answer = filled("ConstantFill", **arguments)

    assert (answer.dtype, answer.tolist()) == (expected.dtype, expected.tolist())


def test_a_fill_has_the_shape_of_its_input():
    sent = {"x": np.zeros((2, 3), np.float32)}
    shape = {"x": np.array([2, 3], np.int32)}

    assert filled("ConstantFill", "x", sent, value=2.0).tolist() == [[2.0] * 3] * 2
    assert filled("ConstantFill", "x", sent, value=2.0, extra_shape=[2]).shape == (2, 3, 2)
    assert filled("ConstantFill", "x", shape, value=2.0, input_as_shape=1).shape == (2, 3)


def test_numbers_are_counted():
    net = Net()
    net.weights("like", np.zeros((2, 2), np.float32))
    net.op("RangeFill", "like", "square")
    for name, value in (("start", 1), ("stop", 7), ("step", 2)):
        net.weights(name, np.array([value], np.int64))
    net.op("Range", "stop", "all")
    net.op("Range", "start stop", "some")
    net.op("Range", "start stop step", "odd")

    answer = net.gives("square", "all", "some", "odd").run()

    assert answer["square"].tolist() == [[0, 1], [2, 3]]
    assert (answer["all"].tolist(), answer["some"].tolist()) == (list(range(7)), list(range(1, 7)))
    assert answer["odd"].tolist() == [1, 3, 5]


def test_operators_of_the_init_net_may_compute():
    net = Net("x")
    net.weights("w", np.array([1.0, 4.0], np.float32))
    net.init.op.add(type="Sqrt", input=["w"], output=["root"])
    net.op("Mul", "x root", "y")

    answer = net.gives("y").run(x=np.ones((1, 2), np.float32))

    assert answer["y"].tolist() == [[1, 2]]


@pytest.mark.parametrize("kind", RANDOM)
def test_random_weights_are_refused(kind):
    with pytest.raises(TranslationError, match=f"operator 0 {kind} of the net draws random values"):
        filled(kind, shape=[2])


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("GivenTensorFill", {"shape": [3], "values": [1.0, 2.0]}, "has 2 values for the shape [3]"),
        ("ConstantFill", {"shape": [-3]}, "operator 0 ConstantFill of the net cannot be translated: ValueError: "),
        ("ConstantFill", {"shape": [2**40]}, "cannot be translated: "),
        ("ConstantFill", {"shape": [3], "dtype": 4}, "has the dtype 4, which is none of 1, 2, 3"),
    ],
)
def test_values_that_do_not_fit_are_refused(kind, arguments, message):
    with pytest.raises(TranslationError) as raised:
        filled(kind, **arguments)

    assert message in str(raised.value)

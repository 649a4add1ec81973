"""Functions of several tensors, element by element, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naiad_caffe2.translation.arguments import TranslationError

from .nets import one

FLOATS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
COMPARED = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
TRUTHS = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
BITS = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}
LAID = [
    ((2, 3, 4, 5), (4, 5), {"broadcast": 1}, (1, 1, 4, 5)),
    ((2, 3, 4, 5), (5,), {"broadcast": 1}, (1, 1, 1, 5)),
    ((2, 3, 4, 5), (3,), {"broadcast": 1, "axis": 1}, (1, 3, 1, 1)),
    ((2, 3, 4, 5), (3, 4), {"broadcast": 1, "axis": 1}, (1, 3, 4, 1)),
    ((2, 3, 4, 5), (2,), {"broadcast": 1, "axis": 0}, (2, 1, 1, 1)),
    ((2, 3, 4, 5), (3,), {"broadcast": 1, "axis_str": "C"}, (1, 3, 1, 1)),
    ((2, 3, 4, 5), (5,), {"broadcast": 1, "axis_str": "C", "order": "NHWC"}, (1, 1, 1, 5)),
    ((2, 3), (1,), {"broadcast": 1}, (1, 1)),
    ((3,), (1, 1), {"broadcast": 1}, (1,)),
    ((2, 3), (), {"broadcast": 1}, (1, 1)),
    ((2, 3, 4), (3, 1), {}, (1, 3, 1)),
    ((2, 3), (2, 3), {}, (2, 3)),
]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(("first", "second", "arguments", "laid"), LAID)
def test_the_second_input_is_laid_over_the_first(kind, first, second, arguments, laid, random):
    a = random.standard_normal(first).astype(np.float32)
    b = random.uniform(1, 2, second).astype(np.float32)

    answer = one(kind, a, b, constants=[1] if b.size == 1 else [], **arguments)

    np.testing.assert_allclose(answer, FLOATS[kind](a, b.reshape(laid)), rtol=1e-6)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_any_part_of_the_dims_can_be_laid_over(dims, data):
    start = data.draw(st.integers(0, len(dims) - 1))
    end = data.draw(st.integers(start + 1, len(dims)))
    a = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    b = np.arange(1, 1 + np.prod(dims[start:end]), dtype=np.float32).reshape(dims[start:end])

    answer = one("Add", a, b, constants=[1], broadcast=1, axis=start)

    assert answer.tolist() == (a + b.reshape([*dims[start:end], *[1] * (len(dims) - end)])).tolist()


@pytest.mark.parametrize("kind", COMPARED)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_numbers_are_compared(kind, dtype):
    a, b = np.array([1, 2, 3], dtype), np.array([3, 2, 1], dtype)

    assert one(kind, a, b).tolist() == COMPARED[kind](a, b).tolist()


@pytest.mark.parametrize("kind", TRUTHS)
def test_truths_are_joined(kind):
    a, b = np.array([[True, True], [False, False]]), np.array([True, False])

    assert one(kind, a, b, broadcast=1).tolist() == TRUTHS[kind](a, b).tolist()


@pytest.mark.parametrize("kind", BITS)
def test_bits_are_joined(kind):
    a, b = np.array([12, 10], np.int32), np.array([10, 7], np.int32)

    assert one(kind, a, b).tolist() == BITS[kind](a, b).tolist()


def test_whole_numbers_are_divided_towards_zero():
    assert one("Div", np.array([7, -7], np.int32), np.array([2, 2], np.int32)).tolist() == [3, -3]


def test_a_power_is_an_argument_or_an_input():
    array = np.array([[1, 2, 3]], np.float32)

    assert one("Pow", array, exponent=2.0).tolist() == [[1, 4, 9]]
    assert one("Pow", array, np.array([3, 2, 1], np.float32), broadcast=1).tolist() == [[1, 4, 3]]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", ["Sum", "Mean", "Max", "Min"])
def test_any_number_of_inputs_become_one(kind, count, random):
    arrays = [random.standard_normal((2, 3)).astype(np.float32) for _ in range(count)]

    np.testing.assert_allclose(one(kind, *arrays), getattr(np, kind.lower())(arrays, axis=0), rtol=1e-5, atol=1e-6)


def test_whole_numbers_are_summed():
    assert one("Sum", np.array([1, 2], np.int64), np.array([3, 4], np.int64)).tolist() == [4, 6]


def test_inputs_have_weights():
    first, second = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    half, two = np.array([0.5], np.float32), np.array([2], np.float32)

    assert one("WeightedSum", first, half, second, two).tolist() == [6.5, 9]


def test_where_chooses_elements_or_rows():
    yes, no = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)

    assert one("Where", np.array([[True, False], [False, True]]), yes, no).tolist() == [[1, 0], [0, 1]]
    assert one("Where", np.array([True, False]), yes, no, enable_broadcast=1).tolist() == [[1, 1], [0, 0]]
    assert one("Conditional", np.array([True, False]), yes, no).tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("kind", "shapes", "arguments", "message"),
    [
        ("Add", [(2, 3), (2, 3)], {"broadcast": 1, "axis": 1}, "lays an input of 2 dims over one of 2 from axis 1 on"),
        ("Add", [(2, 3), (3,)], {"broadcast": 1, "axis": 5}, "has axis 5, and its input 'a' has 2 dims"),
        ("Add", [(2, 3), (3,)], {"broadcast": 1, "axis_str": "Q"}, "has axis_str 'Q', which is not a letter of NCHW"),
        ("Add", [(2, 3), (4, 4)], {}, "cannot take its inputs 'a' [a.0,3], 'b' [b.0,4]: "),
        ("Add", [(2, 3)], {}, "has 1 inputs"),
        ("WeightedSum", [(2,), (1,), (2,)], {}, "needs a weight behind every input"),
    ],
)
def test_inputs_that_do_not_fit_are_reported(kind, shapes, arguments, message):
    with pytest.raises(TranslationError) as raised:
        one(kind, *(np.ones(shape, np.float32) for shape in shapes), **arguments)

    assert message in str(raised.value)

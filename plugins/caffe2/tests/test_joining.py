"""Putting values together along an axis, and taking them apart."""

import numpy as np
import pytest

from naiad_caffe2.translation.arguments import TranslationError

from .nets import Net, one

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
B = np.arange(16, dtype=np.float32).reshape(2, 2, 4)


@pytest.mark.parametrize("kind", ["Concat", "DepthConcat"])
@pytest.mark.parametrize("arguments", [{}, {"axis": 1}, {"order": "NCHW"}, {"axis": -2}])
def test_parts_are_joined_and_their_lengths_reported(kind, arguments):
    joined, lengths = one(kind, A, B, outputs=2, **arguments)

    assert joined.tolist() == np.concatenate([A, B], 1).tolist()
    assert (lengths.dtype, lengths.tolist()) == (np.int32, [3, 2])


def test_channels_are_the_last_axis_in_nhwc():
    assert one("Concat", A, A, order="NHWC").shape == (2, 3, 8)


def test_lengths_that_vary_are_reported():
    joined, lengths = one("Concat", A, A[:1], outputs=2, axis=0)

    assert (joined.shape, lengths.tolist()) == ((3, 3, 4), [2, 1])


def test_parts_may_be_joined_along_a_new_axis():
    joined, lengths = one("Concat", A, A, outputs=2, axis=1, add_axis=1)

    assert joined.tolist() == np.stack([A, A], 1).tolist()
    assert lengths.tolist() == [1, 1]


@pytest.mark.parametrize("kind", ["Split", "DepthSplit"])
@pytest.mark.parametrize("arguments", [{"split": [1, 2]}, {"split": [1, 2], "axis": 1}])
def test_a_value_is_taken_apart(kind, arguments):
    first, second = one(kind, A, outputs=2, **arguments)

    assert first.tolist() == A[:, :1].tolist()
    assert second.tolist() == A[:, 1:].tolist()


@pytest.mark.parametrize("constants", [[], [1]])
def test_lengths_may_be_an_input(constants):
    first, second = one("Split", A, np.array([1, 3], np.int32), constants=constants, outputs=2, axis=2)

    assert (first.tolist(), second.tolist()) == (A[..., :1].tolist(), A[..., 1:].tolist())


def test_parts_are_equal_when_nothing_is_said():
    parts = one("Split", A, outputs=3)

    assert [part.tolist() for part in parts] == [A[:, [index]].tolist() for index in range(3)]
    assert one("Split", A, outputs=4, order="NHWC")[3].tolist() == A[..., 3:].tolist()


def test_parts_may_lose_the_axis():
    parts = one("Split", A, outputs=3, axis=1, add_axis=1)

    assert [part.tolist() for part in parts] == [A[:, index].tolist() for index in range(3)]


def test_what_was_joined_is_taken_apart_again():
    net = Net("a", "b")
    net.op("Concat", "a b", "joined lengths", axis=1)
    net.op("Split", "joined lengths", "first second", axis=1)

    answer = net.gives("first", "second").run(a=A, b=B)

    assert (answer["first"].tolist(), answer["second"].tolist()) == (A.tolist(), B.tolist())


@pytest.mark.parametrize(
    ("arguments", "outputs", "message"),
    [
        ({"split": [1, 2]}, 3, "has 2 lengths for 3 outputs"),
        ({"axis": 3}, 2, "has axis 3, and there are 3 dims"),
        ({}, 2, "cannot split 3 into 2 equal parts"),
        ({"axis": 0}, 2, "splits axis 0, whose size varies, into equal parts"),
    ],
)
def test_lengths_that_are_invalid_are_refused(arguments, outputs, message):
    with pytest.raises(TranslationError) as raised:
        one("Split", A, outputs=outputs, **arguments)

    assert message in str(raised.value)

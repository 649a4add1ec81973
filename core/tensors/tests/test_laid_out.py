"""Inputs in received bytes: tensors are made on demand, and those of a batch are joined without them."""

import numpy as np
import pytest

from naiad_tensors.laid_out import FEW_BYTES, Field, InputLayout, LaidOutInputs, join_rows
from naiad_tensors.tensors import Tensor

FP32, INT64 = np.dtype(np.float32), np.dtype(np.int64)
LAYOUT = InputLayout([Field("a", "FP32", (2, 2), FP32, 0, 16), Field("b", "INT64", (2, 1), INT64, 16, 16)])


def _content(first):
    return np.arange(first, first + 4, dtype=FP32).tobytes() + np.array([first, -first], INT64).tobytes()


def _inputs(first, start=0, layout=LAYOUT):
    return LaidOutInputs(layout, bytes(start) + _content(first), start)


def test_they_are_a_mapping_of_tensors():
    inputs = _inputs(5)

    assert (list(inputs), len(inputs), "a" in inputs, "c" in inputs) == (["a", "b"], 2, True, False)
    assert [(each.name, each.datatype, each.shape) for each in inputs.values()] == [
        ("a", "FP32", (2, 2)),
        ("b", "INT64", (2, 1)),
    ]
    assert {name: tensor.array.tolist() for name, tensor in inputs.items()} == {
        "a": [[5, 6], [7, 8]],
        "b": [[5], [-5]],
    }


def test_a_tensor_is_the_same_each_time_and_a_view_on_the_bytes():
    inputs = _inputs(1)

    array = inputs["a"].array

    assert inputs["a"] is dict(inputs)["a"]
    assert np.shares_memory(array, np.frombuffer(inputs.content, np.uint8))
    assert not array.flags.writeable


@pytest.mark.parametrize("start", range(9))
def test_an_array_is_aligned_wherever_the_bytes_begin(start):
    inputs = _inputs(3, start)

    assert all(tensor.array.flags.aligned for tensor in inputs.values())
    assert inputs["b"].array.tolist() == [[3], [-3]]


def test_the_inputs_of_a_batch_are_joined_wherever_they_begin():
    every = [_inputs(1), _inputs(2, 3), _inputs(3, 16)]

    joined = join_rows("b", every)

    assert (joined.dtype, joined.tolist()) == (INT64, [[1], [-1], [2], [-2], [3], [-3]])
    assert joined.flags.aligned
    assert joined.flags.writeable


def test_inputs_that_came_as_tensors_are_those():
    tensors = {"s": Tensor("s", "BYTES", (1,), np.array([b"x"], object))}
    inputs = LaidOutInputs(InputLayout(), b"", 0, tensors)

    assert dict(inputs) == tensors
    assert join_rows("s", [inputs, inputs]).tolist() == [b"x", b"x"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(dict(_inputs(1)), id="tensors"),
        pytest.param(_inputs(1, layout=InputLayout(LAYOUT.fields)), id="another layout"),
    ],
)
def test_requests_of_several_layouts_are_joined_too(other):
    assert join_rows("a", [_inputs(5), other]).tolist() == [[5, 6], [7, 8], [1, 2], [3, 4]]
    assert join_rows("a", [other, _inputs(5)]).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


@pytest.mark.parametrize("size", [0, FEW_BYTES, FEW_BYTES + 4])
def test_inputs_of_any_size_are_joined(size):
    array = np.arange(size // 4, dtype=FP32)[None]
    inputs = LaidOutInputs(InputLayout([Field("x", "FP32", array.shape, FP32, 0, size)]), array.tobytes())

    assert join_rows("x", [inputs, inputs]).tolist() == array.tolist() * 2

"""Tensors of one layout are made on demand; a batch joins inputs and is cut into answers without them."""

import sys

import numpy as np
import pytest

from naiad_config.errors import ModelFailedError
from naiad_config.text import parse_text
from naiad_tensors.laid_out import FEW_BYTES, ArrayLayout, Field, InputLayout, LaidOutArrays, LaidOutInputs, join_rows
from naiad_tensors.outputs import DeclaredOutputs
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


@pytest.mark.parametrize("come_as_tensors", [False, True])
def test_the_memory_of_large_inputs_is_kept_by_their_arrays_alone(come_as_tensors):
    body = np.zeros(FEW_BYTES + 4, np.uint8)
    field = Field("x", "FP32", (1, body.size // 4), FP32, 0, body.size)
    tensors = {"x": Tensor("x", "FP32", field.shape, np.ndarray(field.shape, FP32, body))} if come_as_tensors else None
    without = sys.getrefcount(body) - come_as_tensors
    inputs = LaidOutInputs(InputLayout([field]), memoryview(body), 0, tensors)

    received = inputs["x"].payload

    assert received.base is body
    assert sys.getrefcount(body) == without + 1  # the array


def test_small_inputs_beside_large_ones_are_joined_after_tensors_were_made():
    array = np.arange(FEW_BYTES, dtype=FP32)[None]
    fields = [Field("small", "FP32", (1, 1), FP32, 0, 4), Field("large", "FP32", array.shape, FP32, 0, array.nbytes)]
    layout = InputLayout(fields)
    inputs = [LaidOutInputs(layout, array.tobytes()) for _ in range(2)]

    assert inputs[0]["large"].array.tolist() == array.tolist()
    assert join_rows("small", inputs).tolist() == [[0], [0]]


def test_outputs_are_a_mapping_of_tensors():
    layout = ArrayLayout([("a", "FP32", FP32, (1, 2)), ("b", "INT64", INT64, (1, 1))])
    outputs = LaidOutArrays(layout, [np.array([[1, 2]], FP32), np.array([[3]], INT64)])

    assert (list(outputs), len(outputs), layout.sizes, layout.nbytes) == (["a", "b"], 2, (8, 8), 16)
    assert outputs["b"].array is outputs.arrays[1]
    assert [(each.name, each.datatype, each.shape) for each in outputs.values()] == [
        ("a", "FP32", (1, 2)),
        ("b", "INT64", (1, 1)),
    ]


def _declared(dims="2"):
    first = f'output {{ name: "a" data_type: TYPE_FP32 dims: [{dims}] }}'
    outputs = first + 'output { name: "b" data_type: TYPE_INT64 dims: [1] }'
    return DeclaredOutputs(parse_text(f'name: "m" backend: "b" max_batch_size: 8 {outputs}'))


def _outputs(size):
    return {"a": np.arange(2 * size, dtype=FP32).reshape(size, 2), "b": np.arange(size)[:, None]}


@pytest.mark.parametrize(("dims", "kind"), [("2", LaidOutArrays), ("-1", dict)])
def test_the_answers_of_a_batch_have_one_layout_if_all_shapes_are_fixed(dims, kind):
    declared = _declared(dims)

    parts = declared.cut(declared.read(_outputs(3), 3), [1, 1, 1])

    assert [type(part) for part in parts] == [kind] * 3
    assert [part["a"].array.tolist() for part in parts] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert [part["b"].array.tolist() for part in parts] == [[[0]], [[1]], [[2]]]
    if kind is LaidOutArrays:
        assert parts[0].layout is parts[1].layout is declared.read(_outputs(1), 1).layout


@pytest.mark.parametrize("dims", ["2", "-1"])
def test_rows_without_an_occupant_have_no_answer(dims):
    declared = _declared(dims)

    first, none, last = declared.cut(declared.read(_outputs(3), 3), [1, 1, 1], [True, False, True])

    assert none is None
    assert (first["b"].array.tolist(), last["b"].array.tolist()) == ([[0]], [[2]])


def test_requests_of_several_rows_get_theirs():
    declared = _declared()

    first, second = declared.cut(declared.read(_outputs(3), 3), [1, 2])

    assert (first["b"].array.tolist(), second["b"].array.tolist()) == ([[0]], [[1], [2]])


def test_the_order_of_the_model_decides():
    declared, outputs = _declared(), _outputs(1)

    assert list(declared.read(dict(reversed(outputs.items())), 1)) == ["b", "a"]
    assert list(declared.read(outputs, 1)) == ["a", "b"]


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.zeros((1, 2), np.float64), id="dtype"),
        pytest.param(np.zeros((1, 3), FP32), id="shape"),
        pytest.param([[0.0, 0.0, 0.0]], id="list"),
    ],
)
def test_an_output_that_is_not_as_configured_is_refused_behind_one_that_was(array):
    declared = _declared()
    declared.read(_outputs(1), 1)

    with pytest.raises(ModelFailedError, match="output 'a'"):
        declared.read({**_outputs(1), "a": array}, 1)


def test_inputs_that_are_arrays_are_joined_without_tensors():
    layout = ArrayLayout([("a", "FP32", FP32, (1, 2)), ("b", "INT64", INT64, (1,))])
    every = [LaidOutArrays(layout, (np.full((1, 2), number, FP32), np.array([number], INT64))) for number in (1, 2, 3)]

    assert join_rows("a", every).tolist() == [[1, 1], [2, 2], [3, 3]]
    assert join_rows("b", every).tolist() == [1, 2, 3]
    assert [each._tensors for each in every] == [None] * 3


def test_an_array_and_a_tensor_are_joined():
    arrays = LaidOutArrays(ArrayLayout([("b", "INT64", INT64, (1,))]), (np.array([1], INT64),))

    assert join_rows("b", [arrays, {"b": Tensor.of("b", np.array([2]))}]).tolist() == [1, 2]
    with pytest.raises(KeyError):
        join_rows("c", [arrays, arrays])

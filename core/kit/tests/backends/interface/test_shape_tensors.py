"""Models whose shape tensors begin with the batch size, beside configurations that leave it out."""

import pytest

from naiad_config import DataType
from naiad_config.text import parse_text
from naiad_kit.backends.interface import Interface, ModelTensor, completed, mismatches, with_shapes_as_rows

CONFIG = """
    name: "m" backend: "onnxruntime" max_batch_size: 4
    input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }
    input { name: "S" data_type: TYPE_INT64 dims: [ 2 ] is_shape_tensor: true }
    output { name: "B" data_type: TYPE_FP32 dims: [ -1 ] }
"""


def interface(*shape: int) -> Interface:
    inputs = tensor("A", DataType.TYPE_FP32, -1, 1), tensor("S", DataType.TYPE_INT64, *shape)
    return Interface(inputs, (tensor("B", DataType.TYPE_FP32, -1, -1),))


def tensor(name: str, data_type: DataType, *shape: int) -> ModelTensor:
    return ModelTensor(name, data_type.name, data_type, shape)


@pytest.mark.parametrize(
    ("shape", "rows"), [((3,), (-1, 2)), ((-1,), (-1, -1)), ((1,), (1,)), ((), ()), ((2, 2), (2, 2))]
)
def test_the_batch_size_in_front_of_the_values_becomes_rows(shape: tuple[int, ...], rows: tuple[int, ...]) -> None:
    seen = with_shapes_as_rows(interface(*shape), parse_text(CONFIG))

    assert [each.shape for each in seen.inputs] == [(-1, 1), rows]


def test_without_batching_and_without_shape_tensors_all_stays_as_it_is() -> None:
    model = interface(3)

    assert with_shapes_as_rows(model, parse_text(CONFIG.replace("max_batch_size: 4", ""))) is model
    assert with_shapes_as_rows(model, parse_text(CONFIG.replace("is_shape_tensor: true", ""))) is model


def test_a_shape_tensor_is_completed_and_compared_without_the_batch_size() -> None:
    open_dims = parse_text(CONFIG.replace("dims: [ 2 ] ", "").replace('output { name: "B"', "output {"))
    wrong = parse_text(CONFIG.replace("dims: [ 2 ]", "dims: [ 3 ]"))

    seen = with_shapes_as_rows(interface(3), open_dims)

    assert completed(open_dims, seen, 4).input[1].dims == (2,)
    assert not mismatches(parse_text(CONFIG), seen)
    assert [each.path for each in mismatches(wrong, seen)] == ["input[1].dims"]

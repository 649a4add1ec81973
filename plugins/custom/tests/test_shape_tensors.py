"""Functions with parameters and results that hold a shape, the batch size in front."""

import numpy as np
import pytest

from naiad.errors import ConfigError
from naiad_tensors.ragged import layout_of

CODE = """
    import numpy as np
    from naiad_custom import FP32, INT32, Array, model

    @model(max_batch_size=8, outputs=("wide", "given"))
    def widen(a: Array[FP32, 1], shape: Array[INT32, 2]) -> tuple[Array[FP32, -1], Array[INT32, 2]]:
        return np.broadcast_to(a, tuple(shape)), shape
"""
CONFIG = """
    input { name: "shape" dims: [ 1 ] is_shape_tensor: true }
    output { name: "given" is_shape_tensor: true }
"""


def test_a_function_gets_the_size_of_the_whole_batch_in_front_of_the_values(folder, batch_of):
    folder.write(CODE, CONFIG)
    row, shape = np.ones((1, 1), dtype=np.float32), np.array([3], dtype=np.int32)
    batch = batch_of({"a": row, "shape": shape}, {"a": row * 2, "shape": shape})
    batch.layout = layout_of(folder.completed())

    outputs = folder.instance().execute(batch)

    assert outputs["wide"].tolist() == [[1, 1, 1], [2, 2, 2]]
    assert outputs["given"].tolist() == [2, 3]


def test_clients_know_a_shape_without_the_batch_size(folder):
    folder.write(CODE, CONFIG.replace("dims: [ 1 ] ", ""))

    config = folder.completed()

    assert [(each.name, each.dims) for each in config.input] == [("shape", (1,)), ("a", (1,))]
    assert [(each.name, each.dims) for each in config.output] == [("given", (1,)), ("wide", (-1,))]


def test_a_shape_of_any_length_stays_one_for_clients(folder):
    folder.write(CODE.replace("Array[INT32, 2]", "Array[INT32, -1]"), CONFIG.replace("dims: [ 1 ] ", ""))

    config = folder.completed()

    assert (config.input[0].dims, config.output[0].dims) == ((-1,), (-1,))


def test_the_length_of_the_configuration_stays_where_the_annotation_leaves_it_open(folder):
    folder.write(CODE.replace("shape: Array[INT32, 2]", "shape: Array[INT32, -1]"), CONFIG)

    assert folder.completed().input[0].dims == (1,)


def test_an_annotation_without_a_value_is_reported(folder):
    folder.write(CODE.replace("shape: Array[INT32, 2]", "shape: Array[INT32, 1]"), CONFIG.replace("dims: [ 1 ] ", ""))

    with pytest.raises(ConfigError) as caught:
        folder.completed()

    (problem,) = caught.value.problems
    assert (problem.path, problem.hint) == (
        "input[0].is_shape_tensor",
        "write shape: Array[INT32, -1], the batch size in front of the values",
    )


@pytest.mark.parametrize("annotation", ["INT32, 3", "INT32, 1", "INT32, 2, 2"])
def test_an_annotation_without_room_for_the_batch_size_is_reported(folder, annotation):
    folder.write(CODE.replace("shape: Array[INT32, 2]", f"shape: Array[{annotation}]"), CONFIG)

    with pytest.raises(ConfigError) as caught:
        folder.completed()

    (problem,) = caught.value.problems
    assert problem.path == "input[0].is_shape_tensor"
    assert problem.hint == "write shape: Array[INT32, 2], the batch size in front of the values"

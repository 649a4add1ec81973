"""ONNX models with inputs and outputs that hold a shape, the batch size in front."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from naiad.errors import ConfigError, InvalidArgumentError

SHAPES = """
    max_batch_size: 8
    input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }
    input { name: "S" data_type: TYPE_INT64 dims: [ DIMS ] is_shape_tensor: true }
    output { name: "WIDE" data_type: TYPE_FP32 dims: [ -1 ] }
    output { name: "GIVEN" data_type: TYPE_INT64 dims: [ DIMS ] is_shape_tensor: true }
"""
ONE = SHAPES.replace("DIMS", "1")


@pytest.fixture
def widening(models):
    """WIDE is A repeated to the shape in S, and GIVEN that shape; S has room for the batch size and one value."""
    nodes = [helper.make_node("Expand", ["A", "S"], ["WIDE"]), helper.make_node("Identity", ["S"], ["GIVEN"])]
    shape = helper.make_tensor_value_info("S", TensorProto.INT64, [2])
    sent = helper.make_tensor_value_info("GIVEN", TensorProto.INT64, [2])
    return models.model_of(nodes, [models.value("A", ["n", 1]), shape], [models.value("WIDE", ["n", "m"]), sent])


def requested(count, *values):
    return {"A": np.full((count, 1), count, dtype=np.float32), "S": np.array(values, dtype=np.int64)}


def test_the_model_gets_the_size_of_the_whole_batch_in_front_of_the_values(workbench, widening):
    outputs = workbench.load(widening, ONE).execute(requested(2, 3), requested(1, 3))

    assert outputs["WIDE"].tolist() == [[2, 2, 2], [2, 2, 2], [1, 1, 1]]
    assert outputs["GIVEN"].tolist() == [3, 3]  # clients get the second value


def test_what_is_not_written_is_filled_without_the_batch_size(workbench, widening):
    config = workbench.complete(widening, ONE.replace("dims: [ 1 ] is_shape_tensor", "is_shape_tensor"))

    assert [(each.name, each.dims) for each in config.input] == [("A", (1,)), ("S", (1,))]
    assert [(each.name, each.dims) for each in config.output] == [("WIDE", (-1,)), ("GIVEN", (1,))]


def test_another_number_of_values_than_the_model_has_is_reported(workbench, widening):
    with pytest.raises(ConfigError, match="S"):
        workbench.load(widening, SHAPES.replace("DIMS", "2"))
    served = workbench.load(widening, SHAPES.replace("[ DIMS ] is", "[ -1 ] is", 1).replace("DIMS", "1"))
    with pytest.raises(InvalidArgumentError, match=r"input 'S' of model .* has shape \[2\], and .* takes \[1\]"):
        served.execute(requested(1, 3, 4))

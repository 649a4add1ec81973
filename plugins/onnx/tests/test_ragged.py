"""ONNX models that take the elements of all requests at once."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from naiad.errors import ConfigError, ModelFailedError

from .conftest import RAGGED


def sent(*values: float) -> dict[str, Any]:
    return {"IN": np.array([values], dtype=np.float32)}


def test_requests_of_different_lengths_run_as_one_batch(workbench, models):
    outputs = workbench.load(models.ragged(), RAGGED).execute(sent(1, 2, 3), sent(4), sent(5, 6))

    assert outputs["DOUBLE"].tolist() == [2, 4, 6, 8, 10, 12]
    assert outputs["SUM"].tolist() == [[6], [4], [11]]


def test_what_the_configuration_leaves_open_is_filled(workbench, models):
    short = """
        input { name: "IN" allow_ragged_batch: true }
        batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "OFFSETS" data_type: TYPE_INT32
                      source_input: "IN" }
        output { name: "DOUBLE" }
        batch_output { target_name: "DOUBLE" source_input: "IN" }
    """

    config = workbench.complete(models.ragged(), short)

    assert config.max_batch_size == 4
    assert [(entry.name, entry.dims) for entry in config.input] == [("IN", (-1,))]
    assert [(entry.name, entry.dims) for entry in config.output] == [("DOUBLE", (-1,))]


def test_a_request_that_fails_a_ragged_batch_fails_alone(workbench, models):
    nodes = [helper.make_node("Reshape", ["IN", "TWO"], ["OUT"])]
    two = helper.make_tensor("TWO", TensorProto.INT64, [2], [-1, 2])
    proto = models.model_of(nodes, [models.value("IN", ["n"])], [models.value("OUT", ["m", 2])], (two,))
    pairs = """
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }
    """

    good, bad = workbench.load(proto, pairs).execute(sent(1, 2), sent(1, 2, 3))

    assert good.outputs["OUT"].tolist() == [[1, 2]]
    assert isinstance(bad, ModelFailedError)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"OFFSETS"', '"OTHER"', "unexpected inference input 'OTHER', allowed inputs are: IN, OFFSETS"),
        ("TYPE_INT32", "TYPE_FP32", "expects datatype TYPE_FP32 for input 'OFFSETS', model provides TYPE_INT32"),
        (
            "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
            "BATCH_ITEM_SHAPE",
            "shape [-1] but gets [-1,1]",
        ),
        (" allow_ragged_batch: true", "", "tensor 'IN': the model expects 1 dimensions (shape [-1])"),
    ],
)
def test_what_the_model_does_not_take_is_reported_at_load(workbench, models, old, new, message):
    with pytest.raises(ConfigError) as caught:
        workbench.load(models.ragged(), RAGGED.replace(old, new))

    assert message in str(caught.value)

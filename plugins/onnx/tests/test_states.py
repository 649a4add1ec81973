"""States and controls of sequences: held against the model, fed like inputs, given back like outputs."""

import numpy as np
import pytest
from onnx import TensorProto

from naiad.errors import ModelFailedError

from . import stateful


def test_a_state_goes_in_and_comes_out_with_the_outputs(workbench, float_array):
    served = workbench.load(stateful.adder(), stateful.config())

    answer = served.execute({"INPUT": float_array([[2]]), "INPUT_STATE": float_array([[40]])})

    assert {name: array.tolist() for name, array in answer.items()} == {"OUTPUT": [[42]], "OUTPUT_STATE": [[42]]}


def test_states_of_several_sequences_are_joined_in_order(workbench, float_array):
    served = workbench.load(stateful.adder(), stateful.config())

    answer = served.execute(
        {"INPUT": float_array([[1]]), "INPUT_STATE": float_array([[10]])},
        {"INPUT": float_array([[2]]), "INPUT_STATE": float_array([[20]])},
    )

    assert answer["OUTPUT_STATE"].tolist() == [[11], [22]]


def test_states_of_different_lengths_run_one_by_one(workbench, float_array):
    served = workbench.load(stateful.collector(), stateful.config(dims="-1"))

    first, second = served.execute(
        {"INPUT": float_array([[1]]), "INPUT_STATE": float_array([[10]])},
        {"INPUT": float_array([[2]]), "INPUT_STATE": float_array([[20, 30]])},
    )

    assert first.outputs["OUTPUT_STATE"].tolist() == [[10, 1]]
    assert second.outputs["OUTPUT_STATE"].tolist() == [[20, 30, 2]]
    assert (first.outputs["OUTPUT"].tolist(), second.outputs["OUTPUT"].tolist()) == ([[11]], [[52]])


def test_a_sequence_that_fails_leaves_the_states_of_the_others(workbench, float_array):
    served = workbench.load(
        stateful.picker(), stateful.config().replace("TYPE_FP32 dims: [ 1 ] } ]", "TYPE_INT64 dims: [ 1 ] } ]", 1)
    )

    good, bad = served.execute(
        {"INPUT": np.array([[2]]), "INPUT_STATE": float_array([[1]])},
        {"INPUT": np.array([[9]]), "INPUT_STATE": float_array([[1]])},
    )

    assert good.outputs["OUTPUT_STATE"].tolist() == [[13]]
    assert isinstance(bad, ModelFailedError)


def test_a_state_of_text_is_text_to_the_model(workbench):
    served = workbench.load(stateful.joiner(), stateful.config("TYPE_STRING"))

    answer = served.execute({"INPUT": np.array([["é"]], object), "INPUT_STATE": np.array([[b"caf"]], object)})

    assert answer["OUTPUT_STATE"].tolist() == [["café".encode()]]


def test_a_model_without_batches_has_states_of_their_own_shape(workbench, float_array):
    served = workbench.load(stateful.adder([1]), stateful.config(batching=""))

    answer = served.execute({"INPUT": float_array([1]), "INPUT_STATE": float_array([2])})

    assert answer["OUTPUT_STATE"].tolist() == [3]


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64])
def test_the_start_control_overrules_what_the_state_holds(workbench, kind):
    name = {TensorProto.INT32: "INT32", TensorProto.FLOAT: "FP32", TensorProto.DOUBLE: "FP64"}.get(kind, "INT64")
    served = workbench.load(stateful.adder_with_start(kind), stateful.config(f"TYPE_{name}", sequences=stateful.START))
    dtype = {"FP32": np.float32, "FP64": np.float64, "INT32": np.int32, "INT64": np.int64}[name]
    sent = {"INPUT": np.array([[2]], dtype), "INPUT_STATE": np.array([[40]], dtype)}

    started = served.execute(sent | {"START": np.array([[1]], np.int32)})
    going_on = served.execute(sent | {"START": np.array([[0]], np.int32)})

    assert started["OUTPUT_STATE"].tolist() == [[2]]
    assert going_on["OUTPUT_STATE"].tolist() == [[42]]


def test_a_state_that_is_also_an_output_is_computed_once(workbench, float_array):
    listed = ', { name: "OUTPUT_STATE" data_type: TYPE_FP32 dims: [ 1 ] }'
    served = workbench.load(stateful.adder(), stateful.config(output=listed))

    answer = served.execute({"INPUT": float_array([[1]]), "INPUT_STATE": float_array([[1]])})

    assert list(answer) == ["OUTPUT", "OUTPUT_STATE"]


def test_outputs_that_are_not_written_leave_the_state_to_the_server(workbench):
    written = 'max_batch_size: 8 input [ { name: "INPUT" } ] sequence_batching { state [ { input_name: "INPUT_STATE" '
    config = workbench.complete(
        stateful.adder(), written + 'output_name: "OUTPUT_STATE" data_type: TYPE_FP32 dims: [ 1 ] } ] }'
    )

    assert [entry.name for entry in config.input] == ["INPUT"]
    assert [entry.name for entry in config.output] == ["OUTPUT"]
    assert config.dynamic_batching is None

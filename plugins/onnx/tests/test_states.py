"""States and controls of sequences: held against the model, fed like inputs, given back like outputs."""

import numpy as np
import pytest
from onnx import TensorProto

from naiad.errors import ConfigError, ModelFailedError
from naiad_config.text import parse_text
from naiad_kit.backends.interface import Interface, ModelTensor, mismatches
from naiad_onnx.interface import DATA_TYPES

from . import stateful

FLOAT = "tensor(float)"


def _tensor(name: str, kind: str, shape: tuple[int, ...]) -> ModelTensor:
    return ModelTensor(name, kind, DATA_TYPES[kind], shape)


def interface(state_in: tuple[int, ...], state_out: tuple[int, ...], batch: tuple[int, ...] = (-1,)) -> Interface:
    return Interface(
        (_tensor("INPUT", FLOAT, (*batch, 1)), _tensor("INPUT_STATE", FLOAT, (*batch, *state_in))),
        (_tensor("OUTPUT", FLOAT, (*batch, 1)), _tensor("OUTPUT_STATE", FLOAT, (*batch, *state_out))),
    )


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
    given = {"INPUT": np.array([[2]], dtype), "INPUT_STATE": np.array([[40]], dtype)}

    started = served.execute(given | {"START": np.array([[1]], np.int32)})
    going_on = served.execute(given | {"START": np.array([[0]], np.int32)})

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


@pytest.mark.parametrize(
    ("key", "side"),
    [("input_name", "input"), ("output_name", "output")],
)
def test_a_state_that_the_model_does_not_have_is_told_with_what_it_has(key, side):
    name = f"{side.upper()}_STATE"
    written = stateful.config().replace(f'{key}: "{name}"', f'{key}: "KEPT"')

    problems = mismatches(parse_text(written), interface((1,), (1,)))

    (problem,) = [each for each in problems if "KEPT" in each.message and each.path.endswith(key)]
    assert problem.path == f"sequence_batching.state[0].{key}"
    assert problem.message == (
        f"state 'KEPT' is not a valid state name: unexpected inference {side} 'KEPT', "
        f"allowed {side}s are: {side.upper()}, {name}"
    )


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        (
            "TYPE_FP32 dims: [ 3 ]  }\n      ]",
            "TYPE_INT32 dims: [ 3 ]  }\n      ]",
            "sequence_batching.state[0].data_type",
            "configuration expects datatype TYPE_INT32 for input 'INPUT_STATE', model provides TYPE_FP32",
        ),
        (
            "dims: [ 3 ]  }",
            "dims: [ 2 ]  }",
            "sequence_batching.state[0].dims",
            "tensor 'INPUT_STATE': the model expects dims [3] but the model configuration specifies dims [2]",
        ),
        (
            "dims: [ 3 ]  }",
            "dims: [ 3, 1 ]  }",
            "sequence_batching.state[0].dims",
            "tensor 'OUTPUT_STATE': the model expects 2 dimensions (shape [-1,3]) but the model configuration",
        ),
        (
            "dims: [ 3 ]  }",
            "dims: [ -1 ]  }",
            "sequence_batching.state[0].dims",
            "state 'INPUT_STATE': the model takes dims [3], and with -1 in its dims it begins with dims [1]",
        ),
        (
            "dims: [ 3 ]  }",
            'dims: [ -1 ] initial_state { name: "i" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } }',
            "sequence_batching.state[0].initial_state[0].dims",
            "state 'INPUT_STATE': the model takes dims [3], and its initial_state has dims [2]",
        ),
    ],
)
def test_what_a_state_says_is_held_against_both_of_its_tensors(old, new, path, message):
    written = stateful.config(dims="3")
    assert old in written

    problems = mismatches(parse_text(written.replace(old, new)), interface((3,), (3,)))

    assert path in {problem.path for problem in problems if message in problem.message}


def test_an_initial_state_that_fits_the_model_makes_variable_dims_fixed():
    initial = 'initial_state { name: "i" data_type: TYPE_FP32 dims: [ 3 ] zero_data: true }'

    assert mismatches(parse_text(stateful.config(dims="-1", state=initial)), interface((3,), (3,))) == ()


def test_a_state_that_the_model_does_not_take_back_is_told():
    (problem,) = mismatches(parse_text(stateful.config(dims="-1")), interface((1,), (2,)))

    assert problem.path == "sequence_batching.state[0]"
    assert "gives 'OUTPUT_STATE' with shape [-1,2] and takes 'INPUT_STATE' with shape [-1,1]" in problem.message


def test_the_type_of_a_control_is_told_at_the_key_that_says_it():
    (problem,) = mismatches(
        parse_text(stateful.config(sequences=stateful.START)),
        Interface((*interface((1,), (1,)).inputs, _tensor("START", FLOAT, (-1, 1))), interface((1,), (1,)).outputs),
    )

    assert problem.path == "sequence_batching.control_input[0].control[0].int32_false_true"
    assert "expects datatype TYPE_INT32 for input 'START', model provides TYPE_FP32" in problem.message


def test_what_contradicts_the_model_names_its_file(workbench):
    with pytest.raises(ConfigError) as caught:
        workbench.load(stateful.adder(), stateful.config(dims="7"))

    assert "model 'm', tensor 'INPUT_STATE': the model expects dims [1]" in str(caught.value)
    assert "specifies dims [7], in 1/model.onnx" in str(caught.value)

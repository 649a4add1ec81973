"""Configurations that contradict their model: each problem names both sides."""

import pytest

from naiad_config import ModelConfig
from naiad_config.text import parse_text
from naiad_kit.backends.interface import Interface, mismatches

from .tensors import tensor_of

MODEL = Interface(
    (tensor_of("IN", "tensor(float)", (-1, 16)), tensor_of("IDS", "tensor(int64)", (-1, -1))),
    (tensor_of("OUT", "tensor(float)", (-1, 4)),),
)
FITTING = """
name: "m"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "IDS" data_type: TYPE_INT64 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
SEQUENCE_MODEL = Interface(
    (
        tensor_of("IN", "tensor(float)", (-1, 1)),
        tensor_of("START", "tensor(float)", (-1, 1)),
        tensor_of("STATE", "tensor(float)", (-1, 3)),
    ),
    (tensor_of("OUT", "tensor(float)", (-1, 1)), tensor_of("STATE_OUT", "tensor(float)", (-1, 3))),
)
SEQUENCE = """
name: "m"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
sequence_batching {
  control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "STATE" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 3 ] } ]
}
"""


def changed(old: str, new: str, text: str = FITTING) -> ModelConfig:
    assert old in text
    return parse_text(text.replace(old, new))


def test_a_fitting_configuration_has_no_problem():
    assert mismatches(parse_text(FITTING), MODEL) == ()


def test_a_fitting_sequence_model_has_no_problem():
    assert mismatches(parse_text(SEQUENCE), SEQUENCE_MODEL) == ()


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        (
            ', { name: "IDS" data_type: TYPE_INT64 dims: [ -1 ] }',
            "",
            "input",
            "unable to load model 'm', configuration expects 1 inputs, model provides 2: not configured is 'IDS'",
        ),
        (
            '"IDS"',
            '"IDX"',
            "input[1]",
            "unexpected inference input 'IDX', allowed inputs are: IN, IDS",
        ),
        (
            '"OUT"',
            '"OUTPUT"',
            "output[0]",
            "unexpected inference output 'OUTPUT', allowed outputs are: OUT",
        ),
        (
            '"IN" data_type: TYPE_FP32',
            '"IN" data_type: TYPE_FP16',
            "input[0].data_type",
            "configuration expects datatype TYPE_FP16 for input 'IN', model provides TYPE_FP32",
        ),
        (
            "dims: [ 16 ]",
            "dims: [ 16, 1 ]",
            "input[0].dims",
            "'IN': the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 3 dimensions",
        ),
        (
            "dims: [ 16 ]",
            "dims: [ 15 ]",
            "input[0].dims",
            "model 'm', tensor 'IN': the model expects dims [16] but the model configuration specifies dims [15]",
        ),
        (
            "dims: [ 4 ]",
            "dims: [ -1 ]",
            "output[0].dims",
            "model 'm', tensor 'OUT': the model expects dims [4] but the model configuration specifies dims [-1]",
        ),
        (
            "dims: [ 16 ]",
            "dims: [ 16 ] allow_ragged_batch: true",
            "input[0]",
            "tensor 'IN': the model expects shape [-1,16] but gets [-1]",
        ),
        (
            "dims: [ 16 ]",
            "dims: [ 16 ] optional: true",
            "input[0].optional",
            "input 'IN' is optional in the configuration, but model 'm' has no default for it",
        ),
    ],
)
def test_one_mismatch_is_one_problem(old, new, path, message):
    problems = mismatches(changed(old, new), MODEL)

    assert [problem.path for problem in problems if message in problem.message] == [path]


def test_dims_without_the_batch_dimension_lead_to_max_batch_size():
    (problem, *_) = mismatches(changed("max_batch_size: 8", ""), MODEL)

    assert problem.path == "input[0].dims"
    assert problem.message.endswith("1 dimensions (shape [16])")
    assert problem.hint == "write dims: [-1,16], or set max_batch_size"


def test_dims_with_the_batch_dimension_written_out_are_explained():
    (problem,) = mismatches(changed("dims: [ 16 ]", "dims: [ -1, 16 ]"), MODEL)

    assert "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor" in problem.message
    assert "making complete shape [-1,-1,16]" in problem.message
    assert problem.hint == "write dims: [16]"


def test_all_mismatches_are_reported_at_once():
    config = parse_text(
        """
        name: "m"
        input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
        output [ { name: "OUT" data_type: TYPE_INT8 dims: [ -1, 5 ] } ]
        """
    )

    problems = mismatches(config, MODEL)

    assert [problem.path for problem in problems] == ["input", "input[0]", "output[0].data_type", "output[0].dims"]


def test_variable_dims_of_the_model_take_any_input_dims():
    assert mismatches(changed("dims: [ -1 ]", "dims: [ 7 ]"), MODEL) == ()


def test_variable_input_dims_are_taken_by_a_fixed_model():
    assert mismatches(changed("dims: [ 16 ]", "dims: [ -1 ]"), MODEL) == ()


def test_reshaped_dims_are_held_against_the_model():
    config = changed("dims: [ 16 ]", "dims: [ 4, 4 ] reshape { shape: [ 16 ] }")

    assert mismatches(config, MODEL) == ()


def test_a_fixed_first_dim_cannot_be_batched():
    model = Interface((tensor_of("IN", "tensor(float)", (1, 16)), MODEL.inputs[1]), MODEL.outputs)

    (problem,) = mismatches(parse_text(FITTING), model)

    assert "shape [1,16]" in problem.message
    assert "for the model to support batching the first dimension must be variable" in problem.message


def test_a_scalar_model_takes_one_dim_and_an_empty_reshape():
    model = Interface((tensor_of("IN", "tensor(float)", ()),), (tensor_of("OUT", "tensor(float)", ()),))
    config = parse_text(
        """
        input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } ]
        output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } ]
        """
    )

    assert mismatches(config, model) == ()


def test_an_output_that_is_no_tensor_shows_the_way_out():
    scores = tensor_of("OUT", "seq(map(int64,tensor(float)))", ())

    (problem,) = mismatches(parse_text(FITTING), Interface(MODEL.inputs, (scores,)))

    assert "output 'OUT' of the model is seq(map(int64,tensor(float)))" in problem.message
    assert "zipmap" in problem.hint


def test_optional_inputs_do_not_go_with_batching():
    model = Interface((MODEL.inputs[0], tensor_of("IDS", "tensor(int64)", (-1, 1), optional=True)), MODEL.outputs)

    (problem,) = mismatches(changed("dims: [ -1 ]", "dims: [ 1 ] optional: true"), model)

    assert "optional inputs are for models that do not batch" in problem.message


def test_optional_inputs_may_be_left_out_of_the_configuration():
    model = Interface((*MODEL.inputs, tensor_of("SCALE", "tensor(float)", (1,), optional=True)), MODEL.outputs)

    assert mismatches(parse_text(FITTING), model) == ()


STATE, CONTROL = "sequence_batching.state[0]", "sequence_batching.control_input[0]"
INITIAL = 'dims: [ -1 ] initial_state {{ name: "i" data_type: TYPE_FP32 dims: [ {} ] zero_data: true }}'
NO_STATE = "is not a valid state name: unexpected inference"


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ('"START"', '"BEGIN"', CONTROL, "unexpected inference input 'BEGIN'"),
        (
            "fp32_false_true",
            "int32_false_true",
            f"{CONTROL}.control[0].int32_false_true",
            "expects datatype TYPE_INT32 for input 'START', model provides TYPE_FP32",
        ),
        ('"STATE"', '"KEPT"', f"{STATE}.input_name", f"'KEPT' {NO_STATE} input 'KEPT', allowed inputs are: IN, START"),
        ('"STATE_OUT"', '"KEPT"', f"{STATE}.output_name", f"'KEPT' {NO_STATE} output 'KEPT', allowed outputs are: OUT"),
        ("TYPE_FP32 dims: [ 3 ]", "TYPE_INT32 dims: [ 3 ]", f"{STATE}.data_type", "TYPE_INT32 for input 'STATE'"),
        ("dims: [ 3 ]", "dims: [ 2 ]", f"{STATE}.dims", "tensor 'STATE': the model expects dims [3]"),
        ("dims: [ 3 ]", "dims: [ 3, 1 ]", f"{STATE}.dims", "tensor 'STATE_OUT': the model expects 2 dimensions"),
        ("dims: [ 3 ]", "dims: [ -1 ]", f"{STATE}.dims", "takes dims [3], and with -1 in its dims it begins with dims"),
        ("dims: [ 3 ]", INITIAL.format(2), f"{STATE}.initial_state[0].dims", "and its initial_state has dims [2]"),
    ],
)
def test_controls_and_states_are_held_against_the_model(old, new, path, message):
    problems = mismatches(changed(old, new, SEQUENCE), SEQUENCE_MODEL)

    assert path in {problem.path for problem in problems if message in problem.message}


def test_an_initial_state_that_fits_the_model_makes_variable_dims_fixed():
    assert mismatches(changed("dims: [ 3 ]", INITIAL.format(3), SEQUENCE), SEQUENCE_MODEL) == ()


def test_a_state_that_the_model_does_not_take_back_is_reported():
    wide = tensor_of("STATE_OUT", "tensor(float)", (-1, 4))
    variable = changed("dims: [ 3 ]", "dims: [ -1 ]", SEQUENCE)

    problems = mismatches(variable, Interface(SEQUENCE_MODEL.inputs, (SEQUENCE_MODEL.outputs[0], wide)))

    assert any("gives 'STATE_OUT' with shape [-1,4] and takes 'STATE' with" in problem.message for problem in problems)


def test_a_control_holds_one_element_a_request():
    wide = tensor_of("START", "tensor(float)", (-1, 2))
    model = Interface((SEQUENCE_MODEL.inputs[0], wide, SEQUENCE_MODEL.inputs[2]), SEQUENCE_MODEL.outputs)

    (problem,) = mismatches(parse_text(SEQUENCE), model)

    assert (
        "tensor 'START': the model expects dims [2] but the model configuration specifies dims [1]" in problem.message
    )

"""Rules for sequence batching and its implicit state."""

import pytest

from naiad_config.text import parse_text
from naiad_config.validation import problems

VALID = 'name: "m" backend: "b" max_batch_size: 8 '
UNLIKE = "doesn't match the size of 'state' dimensions"
STATE = 'input_name: "in" output_name: "out" data_type: TYPE_FP32 dims: [ 4, -1 ]'


def problems_of(text, **options):
    return [(problem.path, problem.message) for problem in problems(parse_text(VALID + text), **options)]


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        ("oldest { preferred_batch_size: 0 }", "oldest.preferred_batch_size[0]", "batch size must be positive for m"),
        ("oldest { preferred_batch_size: 9 }", "oldest.preferred_batch_size[0]", "<= max batch size"),
        ("oldest { max_candidate_sequences: -1 }", "oldest.max_candidate_sequences", "must not be negative"),
        (
            "direct { minimum_slot_utilization: 1.5 }",
            "direct.minimum_slot_utilization",
            "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
        ),
        ("direct { minimum_slot_utilization: nan }", "direct.minimum_slot_utilization", "must be in range (0.0, 1.0]"),
        (
            """control_input [
                 { name: "a" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } },
                 { name: "b" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } } ]""",
            "control_input[1].control[0].kind",
            "sequence batching specifies multiple CONTROL_SEQUENCE_END tensors for m",
        ),
        (
            """control_input { name: "a" control [
                 { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] },
                 { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }""",
            "control_input[0]",
            "sequence batching control tensor 'a' is specified for multiple control kinds for m",
        ),
        (
            "control_input { control { int32_false_true: [ 0, 1 ] } }",
            "control_input[0]",
            "sequence batching control tensor must have a name for m",
        ),
        (
            'control_input { name: "a" control { kind: CONTROL_SEQUENCE_READY } }',
            "control_input[0].control[0]",
            "must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_READY",
        ),
        (
            'control_input { name: "a" control { fp32_false_true: [ 0, 1 ] bool_false_true: [ 0, 1 ] } }',
            "control_input[0].control[0].bool_false_true",
            "specifies more than one of the value pairs",
        ),
        (
            'control_input { name: "a" control { fp32_false_true: 0 } }',
            "control_input[0].control[0].fp32_false_true",
            "'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m, not 1",
        ),
        (
            """control_input { name: "a"
                 control { kind: CONTROL_SEQUENCE_CORRID int32_false_true: [ 0, 1 ] data_type: TYPE_UINT64 } }""",
            "control_input[0].control[0].int32_false_true",
            "must not specify 'int32_false_true' for CONTROL_SEQUENCE_CORRID",
        ),
        (
            'control_input { name: "a" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } }',
            "control_input[0].control[0].data_type",
            "unexpected data type TYPE_FP32 for CONTROL_SEQUENCE_CORRID for m",
        ),
        (
            f"""state [ {{ {STATE} }}, {{ {STATE.replace('"out"', '"other"')} }} ]""",
            "state[1].input_name",
            "State input name 'in' specified more than once.",
        ),
        (
            f"""state [ {{ {STATE} }}, {{ {STATE.replace('"in"', '"b"')} }} ]""",
            "state[1].output_name",
            "State output name 'out' specified more than once.",
        ),
        ('state { input_name: "a" data_type: TYPE_FP32 }', "state[0]", "a state must specify 'output_name'"),
        ('state { input_name: "a" output_name: "b" }', "state[0].data_type", "state 'a' must specify 'data_type'"),
        (
            'state { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: 0 }',
            "state[0].dims[0]",
            "a dimension of state 'a'",
        ),
        (
            f'control_input {{ name: "in" control {{ bool_false_true: [ false, true ] }} }} state {{ {STATE} }}',
            "state[0].input_name",
            "state 'in' of m is also a control",
        ),
        (f"state {{ {STATE} use_growable_memory: true }}", "state[0].use_growable_memory", "needs"),
    ],
)
def test_sequence_rules(text, path, phrase):
    ((problem_path, message),) = problems_of(f"sequence_batching {{ {text} }}")

    assert problem_path == f"sequence_batching.{path}"
    assert phrase in message


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (
            'data_type: TYPE_INT32 dims: [ 4, 1 ] zero_data: true name: "i"',
            ".data_type",
            "The data type used for 'initial_state' field of state 'in' does not match the state data type.",
        ),
        (
            "data_type: TYPE_FP32 dims: [ 4, 1 ] zero_data: true",
            "",
            "Field 'name' must be set when using initial_state for state input 'in'.",
        ),
        (
            'data_type: TYPE_FP32 dims: [ 4 ] zero_data: true name: "i"',
            ".dims",
            f"Number of dimensions in 'initial_state' {UNLIKE} for state input 'in'. 1 != 2",
        ),
        (
            'data_type: TYPE_FP32 dims: [ 4, -1 ] zero_data: true name: "i"',
            ".dims[1]",
            "'initial_state' field for state input name 'in' contains variable dimensions.",
        ),
        (
            'data_type: TYPE_FP32 dims: [ 5, 1 ] zero_data: true name: "i"',
            ".dims[0]",
            "'initial_state' dim for input name 'in' doesn't match 'state' dim description. 5 != 4",
        ),
        (
            'data_type: TYPE_FP32 dims: [ 4, 1 ] name: "i"',
            "",
            "'initial_state' of state input 'in' has neither 'zero_data' nor 'data_file'",
        ),
    ],
)
def test_initial_state_rules(text, path, message):
    reason = problems_of(f"sequence_batching {{ state {{ {STATE} initial_state {{ {text} }} }} }}")

    assert reason == [(f"sequence_batching.state[0].initial_state[0]{path}", message)]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (
            'control_input { name: "x" control { bool_false_true: [ false, true ] } }',
            "control_input[0].name",
            "control",
        ),
        ('state { input_name: "x" output_name: "b" data_type: TYPE_FP32 }', "state[0].input_name", "state"),
    ],
)
def test_what_the_server_gives_is_no_input_of_clients(text, path, message):
    reason = problems_of(f'input {{ name: "x" data_type: TYPE_FP32 dims: 1 }} sequence_batching {{ {text} }}')

    assert reason == [(f"sequence_batching.{path}", f"{message} 'x' of m is also an input of clients")]


def test_a_state_that_is_an_output_too_has_its_type():
    output = 'output { name: "out" data_type: TYPE_INT32 dims: [ 4, -1 ] }'

    reason = problems_of(f"{output} sequence_batching {{ state {{ {STATE} }} }}")

    message = "state 'out' is TYPE_FP32 here and TYPE_INT32 among the outputs"
    assert reason == [("sequence_batching.state[0].data_type", message)]


def test_a_state_has_one_initial_state():
    initial = 'initial_state { name: "i" data_type: TYPE_FP32 dims: [ 4, 1 ] zero_data: true } '

    reason = problems_of(f"sequence_batching {{ state {{ {STATE} {initial * 2} }} }}")

    message = "initial_state field for state input 'in' must contain exactly one or zero element. Found '2' elements."
    assert reason == [("sequence_batching.state[0].initial_state", message)]


def test_the_file_of_an_initial_state_must_be_large_enough(tmp_path):
    (tmp_path / "initial_state").mkdir()
    (tmp_path / "initial_state" / "s").write_bytes(b"123")
    initial = 'initial_state { name: "i" data_type: TYPE_FP32 dims: [ 4, 1 ] data_file: "s" } '

    reason = problems_of(f"sequence_batching {{ state {{ {STATE} {initial} }} }}", model_directory=tmp_path)

    message = "initial_state setting expects 16 bytes, but the data provided from s only has 3 bytes"
    assert reason == [("sequence_batching.state[0].initial_state[0].data_file", message)]


def test_a_complete_sequence_model_has_no_problems():
    text = f"""
    sequence_batching {{
      direct {{ minimum_slot_utilization: 0.5 }}
      control_input [
        {{ name: "S" control {{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }} }},
        {{ name: "E" control {{ kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] }} }},
        {{ name: "R" control {{ kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] }} }},
        {{ name: "C" control {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING }} }}
      ]
      state {{ {STATE} initial_state {{ name: "i" data_type: TYPE_FP32 dims: [ 4, 9 ] zero_data: true }} }}
    }}
    """

    assert problems_of(text) == []

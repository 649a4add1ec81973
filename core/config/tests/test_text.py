"""Reading and writing protobuf text."""

import math

import pytest

from naiad.errors import ConfigError, Problem
from naiad_config import (
    DataType,
    InstanceKind,
    ModelConfig,
    ModelInput,
    ModelInstanceGroup,
    ModelParameter,
    ModelQueuePolicy,
    ModelTensorReshape,
    ModelVersionPolicy,
    TimeoutAction,
    VersionsAll,
)
from naiad_config.text import parse_text, parse_text_with_positions, to_text

COMPLETE = """
# an image model
name: "images"; platform: 'onnxruntime_onnx'
max_batch_size: 0x10,
input [
  { name: "a" data_type: TYPE_FP32 dims: [ 3, -1 ] reshape: { shape: [ ] } },
  { name: "b", data_type: 13, dims: 010; dims: 2 optional: t }
]
version_policy < all { } >
dynamic_batching {
  preferred_batch_size: [4, 8]
  max_queue_delay_microseconds: 100
  priority_levels: 2
  default_priority_level: 1
  priority_queue_policy { key: 1 value: { timeout_action: DELAY } }
  priority_queue_policy { value < max_queue_size: 3 > key: 2 }
}
instance_group [ { kind: KIND_CPU count: 2 } ]
parameters: { key: "path" value: { string_value: "one" " and \\"two\\"\\n\\x41\\101\\u00e9" } }
parameters [ { key: "b" }, { key: "c" value { string_value: 'é' } } ]
"""


def test_every_form_of_the_text_format_is_read():
    config = parse_text(COMPLETE)

    assert (config.name, config.platform, config.max_batch_size) == ("images", "onnxruntime_onnx", 16)
    assert config.input == (
        ModelInput(name="a", data_type=DataType.TYPE_FP32, dims=(3, -1), reshape=ModelTensorReshape()),
        ModelInput(name="b", data_type=DataType.TYPE_STRING, dims=(8, 2), optional=True),
    )
    assert config.version_policy == ModelVersionPolicy(all=VersionsAll())
    assert config.dynamic_batching.preferred_batch_size == (4, 8)
    assert config.dynamic_batching.priority_queue_policy == {
        1: ModelQueuePolicy(timeout_action=TimeoutAction.DELAY),
        2: ModelQueuePolicy(max_queue_size=3),
    }
    assert config.instance_group == (ModelInstanceGroup(kind=InstanceKind.KIND_CPU, count=2),)
    assert config.parameters == {
        "path": ModelParameter(string_value='one and "two"\nAAé'),
        "b": ModelParameter(),
        "c": ModelParameter(string_value="é"),
    }


def test_what_was_written_reads_back_equal():
    config = parse_text(COMPLETE)

    text = to_text(config)

    assert parse_text(text) == config
    assert to_text(parse_text(text)) == text


def test_an_empty_text_is_a_configuration_of_defaults():
    assert parse_text("# nothing\n") == ModelConfig()
    assert to_text(ModelConfig()) == ""


@pytest.mark.parametrize("written", ["true", "True", "t", "1", "0x1"])
def test_every_spelling_of_true_is_read(written):
    config = parse_text(f"response_cache {{ enable: {written} }}")

    assert config.response_cache.enable is True


@pytest.mark.parametrize(
    ("written", "value"),
    [("1", 1.0), ("-.5e1", -5.0), ("2.5f", 2.5), ("inf", math.inf), ("- infinity", -math.inf), ("1e400", math.inf)],
)
def test_every_spelling_of_a_float_is_read(written, value):
    config = parse_text(f"model_metrics {{ metric_control {{ histogram_options {{ buckets: [ {written} ] }} }} }}")

    assert config.model_metrics.metric_control[0].histogram_options.buckets == (value,)


def test_a_nan_is_read():
    config = parse_text("sequence_batching { direct { minimum_slot_utilization: nan } }")

    assert math.isnan(config.sequence_batching.direct.minimum_slot_utilization)


def test_a_32_bit_float_keeps_the_digits_that_were_written():
    config = parse_text("sequence_batching { direct { minimum_slot_utilization: 0.3 } }")

    assert config.sequence_batching.direct.minimum_slot_utilization == 0.3


def test_a_float_that_32_bits_cannot_hold_is_refused():
    with pytest.raises(ConfigError, match="expected a number, found '1e39'"):
        parse_text("sequence_batching { direct { minimum_slot_utilization: 1e39 } }")


@pytest.mark.parametrize("platform", ["caffe2_netdef", "custom", "tensorrt_plan"])
def test_configurations_of_older_servers_are_read(platform):
    config = parse_text(
        f"""
        platform: "{platform}"
        input {{ name: "s" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true format: FORMAT_NHWC }}
        instance_group {{ kind: KIND_MODEL profile: "0" }}
        optimization {{ graph {{ level: -1 }} priority: PRIORITY_MAX cuda {{ graphs: 1 }} }}
        sequence_batching {{
          control_input {{ name: "c" control {{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }} }}
        }}
        """
    )

    assert config.platform == platform
    assert config.input[0].is_shape_tensor
    assert config.optimization.graph.level == -1


def test_all_mistakes_are_reported_at_once_with_position_path_and_hint():
    text = (
        'nam: "x"\n'
        'max_batch_size: "8"\n'
        "input { dims: [1, 2.5] data_type: TYPE_FLOAT32 }\n"
        "max_batch_size: 2\n"
        "dynamic_batching { } sequence_batching { }\n"
        "instance_group { kind: CPU count: 5000000000 }\n"
        "name: [ ]\n"
        "input: 3 response_cache { enable: { } }\n"
        "preferred_batch_size: 3\n"
    )

    with pytest.raises(ConfigError) as caught:
        parse_text(text, "models/m/config.pbtxt")

    int32 = "expected an integer from -2147483648 to 2147483647"
    int64 = "expected an integer from -9223372036854775808 to 9223372036854775807"
    file = "models/m/config.pbtxt"
    assert caught.value.problems == (
        Problem("unknown key 'nam' in a model configuration", "nam", file, 1, 1, "did you mean 'name'?"),
        Problem(f'{int32}, found the string "8"', "max_batch_size", file, 2, 17),
        Problem(f"{int64}, found '2.5'", "input[0].dims[1]", file, 3, 19),
        Problem("unknown value 'TYPE_FLOAT32'", "input[0].data_type", file, 3, 35, "did you mean 'TYPE_FP32'?"),
        Problem("'max_batch_size' is given more than once", "max_batch_size", file, 4, 1, "keep one of them"),
        Problem(
            "'sequence_batching' and 'dynamic_batching' exclude each other",
            "sequence_batching",
            file,
            5,
            22,
            "keep one of them",
        ),
        Problem("unknown value 'CPU'", "instance_group[0].kind", file, 6, 24, "did you mean 'KIND_CPU'?"),
        Problem(f"{int32}, found '5000000000'", "instance_group[0].count", file, 6, 35),
        Problem("'name' takes one value, not a list", "name", file, 7, 1),
        Problem("expected a message in braces, found '3'", "input[1]", file, 8, 8),
        Problem("expected true or false, found a message in braces", "response_cache.enable", file, 8, 35),
        Problem(
            "unknown key 'preferred_batch_size' in a model configuration",
            "preferred_batch_size",
            file,
            9,
            1,
            "'preferred_batch_size' belongs inside 'dynamic_batching'",
        ),
    )


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ('name: "x', (1, 7), "this string is not closed on its line"),
        ("\n  name 3", (2, 8), "expected ':' or '{' after the key 'name', found '3'"),
        ("input { name:", (1, 14), "expected a value, found the end of the file"),
        ("input {\n", (2, 1), "the file ends before '}' closes the message that begins at 1:7"),
        ("input { >", (1, 9), "expected a key, found '>': the '{' of 1:7 is still open; close it with '}'"),
        (
            "input [ { dims: [4] ]",
            (1, 21),
            "expected a key, found ']': the '{' of 1:9 is still open; close it with '}'",
        ),
        (
            "input { dims: 4, 0 }",
            (1, 18),
            "expected a key, found '0'; write several values in brackets, as dims: [4, 8]",
        ),
        (
            "max_batch_size: 8,5",
            (1, 19),
            "expected a key, found '5'; 'max_batch_size' takes one value",
        ),
        (
            '{"name": "m"}',
            (1, 1),
            "expected a key, found '{'; this is not JSON: write name: \"m\", without outer braces and quoted keys",
        ),
        (
            "- name: a",
            (1, 1),
            "expected a key, found '-'; this is not YAML: write a list of messages as input [ { name: \"x\" } ]",
        ),
        (
            "input:\n  - name: a",
            (2, 9),
            "expected a key, found ':'; this is not YAML: write a list of messages as input [ { name: \"x\" } ]",
        ),
        ("dims: -1 4", (1, 10), "expected a key, found '4'"),
        (
            "input [\n  { dims: [4] }\n",
            (3, 1),
            "expected ',' or ']' in the list that begins at 1:7, found the end of the file",
        ),
        ("input: [ { } { } ]", (1, 14), "expected ',' or ']' in the list that begins at 1:8, found '{'"),
        ("max_batch_size: 12ab", (1, 17), "'12a' starts no number"),
        ("max_batch_size [ 3 ]", (1, 18), "a list of plain values needs ':' between its key and '['"),
        ('name: "\\q"', (1, 7), "this string has the unknown escape '\\q'; write '\\\\' for a backslash"),
        ('name: "\\ud800"', (1, 7), "the escape '\\ud800' of this string is not a character"),
        ('name: "\\xff"', (1, 7), "the bytes of this string are not UTF-8"),
        ("name: $x", (1, 7), "the character '$' has no meaning here"),
        ("input " + "{ input " * 200, (1, 809), "messages are nested deeper than 100 levels"),
    ],
)
def test_broken_syntax_stops_at_its_position(text, position, message):
    with pytest.raises(ConfigError) as caught:
        parse_text(text)

    (problem,) = caught.value.problems
    assert (problem.message, (problem.line, problem.column)) == (message, position)


def test_an_equals_sign_is_answered_with_the_colon():
    with pytest.raises(ConfigError) as caught:
        parse_text('name = "m"', "config.pbtxt")

    assert str(caught.value).endswith(
        "1:6: the character '=' has no meaning here (write ':' between a key and its value)"
    )


def test_bytes_that_are_no_text_are_named_with_their_position():
    with pytest.raises(ConfigError) as caught:
        parse_text(b'name: "a"\nplatform: "\xff"\n', "config.pbtxt")

    assert str(caught.value) == "config.pbtxt:2:12: byte 0xff is not UTF-8 (save the file as UTF-8 text)"


def test_a_byte_order_mark_is_no_part_of_the_text():
    assert parse_text('\ufeffname: "m"'.encode()).name == "m"


def test_keys_and_elements_have_positions():
    parsed = parse_text_with_positions('name: "m"\ninput [\n  { dims: [ 1,\n 2 ] } ]\nparameters { key: "a.b" }\n')

    assert parsed.config.name == "m"
    assert parsed.positions == {
        "": (1, 1),
        "name": (1, 1),
        "input": (2, 1),
        "input[0]": (3, 3),
        "input[0].dims": (3, 5),
        "input[0].dims[0]": (3, 13),
        "input[0].dims[1]": (4, 2),
        "parameters": (5, 1),
        'parameters["a.b"]': (5, 1),
    }


def test_mistakes_in_the_entries_of_a_map_are_named():
    text = 'parameters { key: 3 valu: 1 } parameters: "x" parameters { key: "a" key: "b" key: [ "c" ] }'

    with pytest.raises(ConfigError) as caught:
        parse_text(text)

    unknown, unquoted, *others = (problem.message for problem in caught.value.problems)
    assert unknown == "unknown key 'valu'"
    assert unquoted.endswith(", found '3'")
    assert others == [
        "expected an entry '{ key: … value: … }'",
        "'key' is given more than once",
        "'key' is given more than once",
    ]

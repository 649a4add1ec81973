"""What is wrong in a configuration: every rule, with the key it is about."""

from pathlib import Path

import pytest

from naiad.config import ModelConfig
from naiad.config.text import parse_text, parse_text_with_places
from naiad.config.validation import misnamed, placed, problems
from naiad.errors import Problem

VALID = 'name: "m" backend: "b" max_batch_size: 8 '
INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } '
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: 4 } '


def found(text, **options):
    return [(problem.path, problem.message) for problem in problems(parse_text(text), **options)]


def only(text, **options):
    (told,) = found(text, **options)
    return told


def test_a_valid_configuration_has_no_problems():
    assert problems(parse_text(VALID + INPUT + OUTPUT)) == ()


def test_ten_mistakes_are_reported_at_once_with_their_places():
    text = """name: "m"
backend: "b"
max_batch_size: 4
input [
  { name: "a" data_type: TYPE_FP32 dims: [ 0 ] },
  { dims: [ 2 ] },
  { name: "c" data_type: TYPE_FP32 dims: [ 4 ] reshape: { shape: [ 3 ] } }
]
output { name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "../labels" }
dynamic_batching {
  preferred_batch_size: [ 0, 8 ]
  preserve_ordering: true
  priority_levels: 2
}
instance_group { kind: KIND_CPU gpus: [ 0 ] }
default_model_filename: "/etc/passwd"
"""
    parsed = parse_text_with_places(text)

    told = problems(parsed.config, places=parsed.places, file="m/config.pbtxt")

    assert [(problem.line, problem.column, problem.path) for problem in told] == [
        (5, 44, "input[0].dims[0]"),
        (7, 48, "input[2].reshape"),
        (11, 27, "dynamic_batching.preferred_batch_size[0]"),
        (11, 30, "dynamic_batching.preferred_batch_size[1]"),
        (10, 1, "dynamic_batching.default_priority_level"),
        (13, 3, "dynamic_batching.priority_levels"),
        (15, 33, "instance_group[0].gpus"),
        (16, 1, "default_model_filename"),
        (9, 49, "output[0].label_filename"),
        (6, 3, "input[1]"),
        (6, 3, "input[1].data_type"),
    ]
    assert {problem.file for problem in told} == {"m/config.pbtxt"}
    assert str(told[3]) == (
        "m/config.pbtxt:11:30: dynamic_batching.preferred_batch_size[1]: dynamic batching preferred size must be <= "
        "max batch size for m: 8 > 4 (raise max_batch_size, or prefer smaller batches)"
    )


def test_what_the_backend_may_still_complete_is_no_problem_yet():
    text = 'name: "m" input { name: "x" } batch_input { target_name: "t" source_input: "z" data_type: TYPE_FP32 }'

    assert found(text, complete=False) == []
    assert [path for path, _ in found(text)] == [
        "backend",
        "input[0].data_type",
        "input[0]",
        "batch_input[0].source_input[0]",
    ]


def test_a_problem_without_a_text_has_no_place():
    (problem,) = problems(ModelConfig(name="m"), file="m")

    assert (problem.file, problem.line, problem.column) == ("m", 0, 0)


def test_problems_that_have_a_place_keep_it():
    own = Problem("x", "name", "other", 7, 8)

    assert placed([own, Problem("y", "name")], {"name": (1, 2)}, "f") == (own, Problem("y", "name", "f", 1, 2))


def test_the_name_must_be_that_of_the_folder():
    (problem,) = misnamed(ModelConfig(name="m"), "n")

    assert problem.message == "unexpected directory name 'n' for model 'm', directory name must equal model name"
    assert misnamed(ModelConfig(name="m"), "m") == misnamed(ModelConfig(), "m") == ()


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        ("max_batch_size: -1", "max_batch_size", "'max_batch_size' must be non-negative value for m"),
        ("version_policy { specific { } }", "version_policy.specific.versions", "no version is listed"),
        ("version_policy { specific { versions: 0 } }", "version_policy.specific.versions[0]", "cannot exist"),
        (
            "response_cache { enable: true } sequence_batching { }",
            "response_cache.enable",
            "Response Cache does not currently support model m with sequence batching scheduler",
        ),
        (
            "response_cache { enable: true } model_transaction_policy { decoupled: true }",
            "response_cache.enable",
            "Response Cache does not currently support model m with 'decoupled' transaction policy",
        ),
        (
            "model_metrics { metric_control { histogram_options { buckets: 1 } } }",
            "model_metrics.metric_control[0]",
            "metric control must specify 'metric_identifier'",
        ),
        (
            "model_metrics { metric_control { metric_identifier { } histogram_options { buckets: 1 } } }",
            "model_metrics.metric_control[0].metric_identifier",
            "metric identifier must specify non-empty 'family'",
        ),
        (
            'model_metrics { metric_control { metric_identifier { family: "f" } } }',
            "model_metrics.metric_control[0]",
            "metric control must specify 'histogram_options'",
        ),
        (
            'model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { } } }',
            "model_metrics.metric_control[0].histogram_options",
            "histogram options must specify non-empty 'buckets'",
        ),
        ('runtime: "../x.so"', "runtime", "backend library name '../x.so' escapes backend directory"),
    ],
)
def test_general_rules(text, path, phrase):
    told = only(f'name: "m" backend: "b" {text}')

    assert told[0] == path
    assert phrase in told[1]


def test_two_schedulers_exclude_each_other():
    config = parse_text(VALID + "dynamic_batching { }")
    other = parse_text("sequence_batching { }")

    both = ModelConfig(
        name="m",
        backend="b",
        dynamic_batching=config.dynamic_batching,
        sequence_batching=other.sequence_batching,
    )

    assert [problem.message for problem in problems(both)] == [
        "'dynamic_batching' and 'sequence_batching' exclude each other"
    ]


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        ("input { data_type: TYPE_FP32 dims: 1 }", "input[0]", "model input must specify 'name'"),
        ('output { name: "o" dims: 1 }', "output[0].data_type", "model output 'o' must specify 'data_type'"),
        ('output { name: "o" data_type: TYPE_FP32 }', "output[0]", "model output 'o' must specify 'dims'"),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: [ 1, -2 ] }',
            "input[0].dims[1]",
            "model input 'i' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 3 ] } }',
            "input[0].reshape",
            "model input 'i' has different size for dims and reshape for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: [ 4, -1, 2 ] reshape { shape: [ 2, -1, 4 ] } }',
            "input[0].reshape",
            "model input 'i' has different size for dims and reshape for m",
        ),
        (
            'output { name: "o" data_type: TYPE_FP32 dims: [ 4, -1 ] reshape { shape: 4 } }',
            "output[0].reshape",
            "model output 'o' has different number of variable-size dimensions for dims and reshape for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 4, 0 ] } }',
            "input[0].reshape.shape[1]",
            "model input 'i' reshape dimensions must be integer >= 1, or -1",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: [ 2, 2 ] format: FORMAT_NHWC }',
            "input[0].format",
            "model input NHWC/NCHW require 3 dims for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: 2 is_shape_tensor: true }',
            "input[0].is_shape_tensor",
            "shape tensors are only supported for TensorRT platform",
        ),
        (INPUT + INPUT, "input[1].name", "model input 'x' is given more than once"),
    ],
)
def test_tensor_rules(text, path, phrase):
    told = only(VALID + text)

    assert told[0] == path
    assert phrase in told[1]


@pytest.mark.parametrize(
    "text",
    [
        VALID + 'input { name: "i" data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }',
        VALID + 'input { name: "i" data_type: TYPE_FP32 dims: 1 reshape { } }',
        VALID + 'input { name: "i" data_type: TYPE_FP32 dims: [ 3, 4, 4 ] format: FORMAT_NCHW }',
        'name: "m" platform: "tensorrt_plan" input { name: "i" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }',
        'name: "m" backend: "onnxruntime" input { name: "i" data_type: TYPE_INT32 dims: 1 reshape { } }',
    ],
)
def test_what_tensors_may_be(text):
    assert found(text) == []


def test_a_scalar_needs_batching():
    told = only('name: "m" backend: "b" input { name: "i" data_type: TYPE_INT32 dims: 1 reshape { } }')

    assert "cannot have empty reshape for non-batching model as scalar tensors are not supported for m" in told[1]


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        (
            'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "t" data_type: TYPE_FP32 }',
            "batch_input[0].source_input",
            "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0",
        ),
        (
            'batch_input { target_name: "t" data_type: TYPE_INT64 source_input: "x" }',
            "batch_input[0].data_type",
            "batch input data type must be TYPE_INT32 or TYPE_FP32",
        ),
        (
            'batch_input { target_name: "t" data_type: TYPE_INT32 source_input: "z" }',
            "batch_input[0].source_input[0]",
            "unknown source input name 'z'",
        ),
        (
            'batch_output { target_name: "yy" source_input: "x" }',
            "batch_output[0].target_name[0]",
            "unknown target output name 'yy'",
        ),
        (
            'batch_output { target_name: "y" target_name: "y" source_input: "x" }',
            "batch_output[0].target_name[1]",
            "target output name 'y' can only be specified once",
        ),
    ],
)
def test_batch_tensor_rules(text, path, phrase):
    told = only(VALID + INPUT + OUTPUT + text)

    assert told[0] == path
    assert phrase in told[1]


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        (
            "preferred_batch_size: [ 2, 0 ]",
            "preferred_batch_size[1]",
            "dynamic batching preferred size must be positive",
        ),
        ("preferred_batch_size: 9", "preferred_batch_size[0]", "preferred size must be <= max batch size for m"),
        ("priority_levels: 3", "default_priority_level", "default priority level must be in range [1, 3] for m"),
        (
            "priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 2 }",
            "priority_queue_policy[2]",
            "priority queue policy must have priority level in range [1, 1] for m",
        ),
        (
            "preserve_ordering: true priority_levels: 2 default_priority_level: 1",
            "priority_levels",
            "Only one priority level is allowed when 'preserve_ordering' is true for m",
        ),
        (
            "preserve_ordering: true default_queue_policy { timeout_action: DELAY }",
            "default_queue_policy.timeout_action",
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
        ),
        (
            "preserve_ordering: true priority_queue_policy { key: 1 value { timeout_action: DELAY } }",
            "priority_queue_policy[1].timeout_action",
            "Queue policy can not have DELAY as timeout action",
        ),
    ],
)
def test_dynamic_batching_rules(text, path, phrase):
    told = only(f"{VALID} dynamic_batching {{ {text} }}")

    assert told[0] == f"dynamic_batching.{path}"
    assert phrase in told[1]


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        ('{ kind: KIND_CPU gpus: 0 name: "g" }', "instance_group[0].gpus", "g of model m has kind KIND_CPU but"),
        (
            "{ kind: KIND_MODEL gpus: 0 }",
            "instance_group[0].gpus",
            "has kind KIND_MODEL but specifies one or more GPUs",
        ),
        ('{ profile: "0" }', "instance_group[0].profile", "specifies 'profile', which only TensorRT models have"),
        ("{ count: 1025 }", "instance_group[0].count", "has count 1025, and the most is 1024"),
        ("{ rate_limiter { resources { count: 1 } } }", "instance_group[0].rate_limiter.resources[0]", "have a name"),
        (
            """[ { rate_limiter { resources { name: "R" } } },
                 { rate_limiter { resources { name: "R" global: true } } } ]""",
            "instance_group[1].rate_limiter.resources[0]",
            'Resource "R" is present as both global and device-specific resource in the model configuration.',
        ),
    ],
)
def test_instance_rules(text, path, phrase):
    told = only(f"{VALID} instance_group {text}")

    assert told[0] == path
    assert phrase in told[1]


def test_a_profile_is_an_index():
    told = only('name: "m" platform: "tensorrt_plan" instance_group { profile: [ "0", "-1" ] }')

    assert told[0] == "instance_group[0].profile[1]"


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        ("dims: 0 zero_data: true", ".dims[0]", "has the dimension 0"),
        ("dims: [ 4, -1 ] zero_data: true", ".dims[1]", "has the dimension -1"),
        ("dims: 4", "", "takes one of 'zero_data', 'random_data' and 'input_data_file', and has none"),
    ],
)
def test_warmup_rules(text, path, phrase):
    sample = f'model_warmup {{ batch_size: 1 inputs {{ key: "x" value {{ data_type: TYPE_FP32 {text} }} }} }}'

    told = only(VALID + INPUT + sample)

    assert told[0] == f'model_warmup[0].inputs["x"]{path}'
    assert phrase in told[1]


def test_a_sample_must_be_like_the_inputs():
    sample = """
    input { name: "z" data_type: TYPE_FP32 dims: 1 }
    sequence_batching { control_input { name: "S" control { int32_false_true: [ 0, 1 ] } } }
    model_warmup { name: "w" batch_size: 1
      inputs { key: "x" value { data_type: TYPE_INT32 dims: 4 zero_data: true } }
      inputs { key: "xx" value { data_type: TYPE_INT32 dims: 4 zero_data: true } }
      inputs { key: "S" value { data_type: TYPE_INT32 dims: 1 zero_data: true } }
    }
    """

    assert found(VALID + INPUT + sample) == [
        ('model_warmup[0].inputs["x"].data_type', "warmup input 'x' is TYPE_INT32, but the input of m is TYPE_FP32"),
        ('model_warmup[0].inputs["xx"]', "warmup input 'xx' is no input of m"),
        ("model_warmup[0]", "warmup sample 'w' lacks the input z"),
    ]


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "..", "a\\000b"])
def test_no_file_leaves_its_folder(name):
    text = f"""
    default_model_filename: "{name}"
    cc_model_filenames {{ key: "8.0" value: "{name}" }}
    output {{ name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "{name}" }}
    model_warmup {{ inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: 1 input_data_file: "{name}" }} }} }}
    """

    assert [path for path, _ in found(VALID + INPUT + text, model_directory=Path("/nowhere"))] == [
        "default_model_filename",
        'cc_model_filenames["8.0"]',
        "output[0].label_filename",
        'model_warmup[0].inputs["x"].input_data_file',
    ]


def test_files_must_be_there_and_large_enough(tmp_path):
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "small").write_bytes(b"1234")
    (tmp_path / "warmup" / "folder").mkdir()
    text = """
    output { name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "labels.txt" }
    model_warmup [
      { inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "small" } } },
      { inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "none" } } },
      { inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "folder" } } }
    ]
    """

    assert found(VALID + INPUT + text, model_directory=tmp_path) == [
        ("output[0].label_filename", "the label file 'labels.txt' of output 'o' is not in the model folder"),
        (
            'model_warmup[0].inputs["x"].input_data_file',
            "warmup setting expects 16 bytes, but the data provided from small only has 4 bytes",
        ),
        ('model_warmup[1].inputs["x"].input_data_file', "the file 'none' is not there"),
        ('model_warmup[2].inputs["x"].input_data_file', "the file 'folder' is not there"),
    ]


def test_a_file_name_longer_than_the_file_system_allows_is_a_file_that_is_not_there(tmp_path):
    text = f'output {{ name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "{"x" * 5000}" }}'

    assert [path for path, _ in found(VALID + text, model_directory=tmp_path)] == ["output[0].label_filename"]


def test_files_that_are_there_are_no_problem(tmp_path):
    (tmp_path / "warmup").mkdir()
    (tmp_path / "warmup" / "x.bin").write_bytes(bytes(20))
    (tmp_path / "warmup" / "s.bin").write_bytes(b"\1\0\0\0a")
    (tmp_path / "labels.txt").write_text("a\n")
    text = """
    input { name: "s" data_type: TYPE_STRING dims: 1000 }
    output { name: "o" data_type: TYPE_FP32 dims: 1 label_filename: "labels.txt" }
    model_warmup { batch_size: 1
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 4 input_data_file: "x.bin" } }
      inputs { key: "s" value { data_type: TYPE_STRING dims: 1000 input_data_file: "s.bin" } }
    }
    """

    assert found(VALID + INPUT + text, model_directory=tmp_path) == []

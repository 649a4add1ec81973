"""Validation of configurations: every rule, with the key that it is about."""

import pytest

from naiad.errors import Problem
from naiad_config import ModelConfig
from naiad_config.text import parse_text, parse_text_with_positions
from naiad_config.validation import misnamed, problems, with_positions

from .rules import INPUT, OUTPUT, VALID, only, problems_of


def test_a_valid_configuration_has_no_problems():
    assert problems(parse_text(VALID + INPUT + OUTPUT)) == ()


def test_ten_mistakes_are_reported_at_once_with_their_positions():
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
    parsed = parse_text_with_positions(text)

    reason = problems(parsed.config, positions=parsed.positions, file="m/config.pbtxt")

    assert [(problem.line, problem.column, problem.path) for problem in reason] == [
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
    assert {problem.file for problem in reason} == {"m/config.pbtxt"}
    assert str(reason[3]).startswith("m/config.pbtxt:11:30: dynamic_batching.preferred_batch_size[1]: ")
    assert str(reason[3]).endswith(" 8 > 4 (raise max_batch_size, or prefer smaller batches)")


def test_what_the_backend_may_still_complete_is_no_problem_yet():
    text = 'name: "m" input { name: "x" } batch_input { target_name: "t" source_input: "z" data_type: TYPE_FP32 }'

    assert problems_of(text, complete=False) == []
    assert [path for path, _ in problems_of(text)] == [
        "backend",
        "input[0].data_type",
        "input[0]",
        "batch_input[0].source_input[0]",
    ]


def test_what_depends_on_the_backend_or_the_batch_size_is_settled_later():
    text = """
    name: "m" dynamic_batching { preferred_batch_size: 4 } instance_group { profile: "0" }
    input { name: "x" data_type: TYPE_FP32 dims: 1 is_shape_tensor: true reshape { } }
    """

    assert problems_of(text, complete=False) == []
    assert [path for path, _ in problems_of(text + 'backend: "b"')] == [
        "input[0].is_shape_tensor",
        "instance_group[0].profile",
        "input[0].reshape",
        "dynamic_batching.preferred_batch_size",
    ]


def test_sequences_without_batching_have_no_preferred_sizes():
    text = 'name: "m" backend: "b" sequence_batching { oldest { preferred_batch_size: 2 } }'

    assert only(text)[0] == "sequence_batching.oldest.preferred_batch_size"


def test_an_ensemble_needs_no_platform_before_it_is_completed():
    text = 'name: "e" ensemble_scheduling { }'

    assert [path for path, _ in problems_of(text, complete=False)] == ["ensemble_scheduling"]


def test_a_problem_without_a_text_has_no_position():
    (problem,) = problems(ModelConfig(name="m"), file="m")

    assert (problem.file, problem.line, problem.column) == ("m", 0, 0)


def test_problems_that_have_a_position_keep_it():
    own = Problem("x", "name", "other", 7, 8)

    assert with_positions([own, Problem("y", "name")], {"name": (1, 2)}, "f") == (own, Problem("y", "name", "f", 1, 2))


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
    reason = only(f'name: "m" backend: "b" {text}')

    assert reason[0] == path
    assert phrase in reason[1]


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
        (
            "preferred_batch_size: [ 2, 0 ]",
            "preferred_batch_size[1]",
            "dynamic batching preferred size must be positive",
        ),
        (
            "preferred_batch_size: 9",
            "preferred_batch_size[0]",
            "dynamic batching preferred size must be <= max batch size for m",
        ),
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
            "preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 9 }",
            "default_queue_policy.timeout_action",
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
        ),
        (
            """preserve_ordering: true
               priority_queue_policy { key: 1 value { timeout_action: DELAY allow_timeout_override: true } }""",
            "priority_queue_policy[1].timeout_action",
            "Queue policy can not have DELAY as timeout action",
        ),
    ],
)
def test_dynamic_batching_rules(text, path, phrase):
    reason = only(f"{VALID} dynamic_batching {{ {text} }}")

    assert reason[0] == f"dynamic_batching.{path}"
    assert phrase in reason[1]


def test_an_ordered_model_may_have_the_action_delay_where_no_request_has_a_timeout():
    text = f"{VALID} dynamic_batching {{ preserve_ordering: true default_queue_policy {{ timeout_action: DELAY }} }}"

    assert problems(parse_text(text)) == ()


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
            'Resource "R" is present as both global and device-specific',
        ),
    ],
)
def test_instance_rules(text, path, phrase):
    reason = only(f"{VALID} instance_group {text}")

    assert reason[0] == path
    assert phrase in reason[1]


def test_a_profile_is_an_index():
    reason = only('name: "m" platform: "tensorrt_plan" instance_group { profile: [ "0", "-1" ] }')

    assert reason[0] == "instance_group[0].profile[1]"

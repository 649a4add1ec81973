"""Reading parameters, optimisation settings and settings of the backend."""

from pathlib import Path

import pytest

from naiad.errors import ConfigError
from naiad_config import ModelPriority
from naiad_config.text import parse_text
from naiad_tensorrt.options import ExecutionOptions
from naiad_tensorrt.parameters import RunSettings, run_settings, without_effect


def settings_of(text="", **backend):
    return run_settings(parse_text(text), {key.replace("_", "-"): value for key, value in backend.items()})


def parameter(key, value):
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def problems(text="", **backend):
    with pytest.raises(ConfigError) as caught:
        settings_of(text, **backend)
    return [(problem.path, problem.message, problem.hint) for problem in caught.value.problems]


def test_without_settings_the_defaults_hold():
    assert settings_of() == RunSettings()
    assert RunSettings().execution == ExecutionOptions(pinned_input=True, pinned_output=True)


def test_the_optimisation_settings_are_read():
    actual = settings_of("""
        optimization {
          priority: PRIORITY_MAX
          cuda { busy_wait_events: true output_copy_stream: true }
          input_pinned_memory { enable: false }
          output_pinned_memory { enable: false }
          gather_kernel_buffer_threshold: 8
          eager_batching: true
        }
    """)

    assert actual.execution == ExecutionOptions(
        busy_wait_events=True,
        pinned_input=False,
        pinned_output=False,
        output_copy_stream=True,
        priority=ModelPriority.PRIORITY_MAX,
    )


@pytest.mark.parametrize("text", ["optimization { }", "optimization { input_pinned_memory { enable: true } }"])
def test_copies_go_through_page_locked_memory_unless_that_is_turned_off(text):
    execution = settings_of(text).execution

    assert (execution.pinned_input, execution.pinned_output) == (True, True)


@pytest.mark.parametrize("strategy", ["STATIC", "ON_PROFILE_CHANGE"])
def test_the_strategy_of_memory_is_read(strategy):
    text = parameter("execution_context_allocation_strategy", strategy)

    assert settings_of(text).execution.allocation_strategy == strategy


def test_the_settings_of_the_backend_are_read():
    actual = settings_of(
        plugins="/lib/a.so;/lib/b.so;",
        version_compatible="true",
        coalesce_request_input="true",
        execution_policy="BLOCKING",
        default_max_batch_size="8",
        min_compute_capability="6.0",
    )

    assert actual.libraries == (Path("/lib/a.so"), Path("/lib/b.so"))
    assert actual.version_compatible


def test_a_budget_of_weights_is_read():
    assert settings_of(parameter("weight_streaming_budget", 4096)).weight_budget == 4096
    assert settings_of(parameter("weight_streaming_budget", 0)).weight_budget == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("execution_context_allocation_strategy", "LAZY"),
        ("weight_streaming_budget", "much"),
        ("weight_streaming_budget", "-1"),
    ],
)
def test_a_parameter_that_is_invalid_is_refused(key, value):
    ((path, message, _),) = problems(parameter(key, value))

    assert path == f"parameters[{key}]"
    assert message.startswith(f"'{key}' cannot be '{value}': ")


def test_the_refusal_of_a_strategy_names_those_there_are():
    ((_, message, _),) = problems(parameter("execution_context_allocation_strategy", "LAZY"))

    assert message.endswith("STATIC or ON_PROFILE_CHANGE")


@pytest.mark.parametrize(
    ("key", "value"), [("version-compatible", "perhaps"), ("execution-policy", "NONE"), ("coalesce-request-input", "2")]
)
def test_a_setting_that_is_invalid_is_refused(key, value):
    ((path, message, _),) = problems(**{key: value})

    assert path == "backend-config"
    assert message.startswith(f"'{key}' cannot be '{value}': ")


def test_parameters_of_others_are_left_alone():
    assert settings_of(parameter("owner", "vision team")) == RunSettings()


def test_a_misspelt_setting_is_refused():
    assert problems(plugin="x.so") == [
        ("backend-config", "the backend for TensorRT has no setting 'plugin'", "did you mean 'plugins'?")
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", []),
        ("graph { level: 0 } cuda { graphs: true graph_spec { batch_size: 1 } }", []),
        ("graph { level: 2 }", ["optimization.graph.level"]),
        ("cuda { graph_spec { batch_size: 1 } }", ["optimization.cuda.graph_spec"]),
        (
            'execution_accelerators { cpu_execution_accelerator { name: "openvino" } }',
            ["optimization.execution_accelerators"],
        ),
    ],
)
def test_what_changes_nothing_for_an_engine_is_known(text, reason):
    assert without_effect(parse_text(f"optimization {{ {text} }}" if text else "")) == reason

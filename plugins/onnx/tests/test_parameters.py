"""Parameters, graph levels and backend settings, and what is said about bad ones."""

import pytest

from naiad.errors import ConfigError
from naiad_config import ModelConfig, ModelParameter
from naiad_config.text import parse_text
from naiad_kit.backends.onnx_runtime import GlobalThreads
from naiad_onnx.parameters import SHRINKAGE, RunSettings, run_settings


def config_with(**parameters: str) -> ModelConfig:
    return ModelConfig(parameters={key: ModelParameter(string_value=text) for key, text in parameters.items()})


def test_a_configuration_without_parameters_runs_with_the_defaults():
    settings = run_settings(ModelConfig(), {})

    assert settings == RunSettings()
    assert settings.graph_level == "ORT_ENABLE_ALL"
    assert settings.memory_arena
    assert settings.memory_pattern


def test_every_parameter_is_read():
    settings = run_settings(
        config_with(
            intra_op_thread_count="3",
            inter_op_thread_count="2",
            execution_mode="1",
            enable_mem_arena="0",
            enable_mem_pattern="false",
            share_session_between_instances="true",
        ),
        {},
    )

    assert settings == RunSettings(
        intra_op_threads=3,
        inter_op_threads=2,
        parallel=True,
        memory_arena=False,
        memory_pattern=False,
        shared=True,
    )


@pytest.mark.parametrize(
    ("level", "name"),
    [(0, "ORT_ENABLE_ALL"), (-1, "ORT_ENABLE_BASIC"), (1, "ORT_ENABLE_EXTENDED"), (2, "ORT_DISABLE_ALL")],
)
def test_graph_levels_have_their_names(level, name):
    settings = run_settings(parse_text(f"optimization {{ graph {{ level: {level} }} }}"), {})

    assert settings.graph_level == name


def test_keys_of_onnx_runtime_are_passed_on():
    entries = {"session.use_device_allocator_for_initializers": "1", "ep.share_ep_contexts": "1"}

    settings = run_settings(config_with(**entries, else_where="x"), {})

    assert settings.entries == entries


def test_arenas_that_shrink_after_a_run_are_named_by_their_devices():
    assert run_settings(config_with(**{SHRINKAGE: "cpu:0;gpu:1"}), {}).shrinks == ("cpu:0", "gpu:1")
    assert run_settings(config_with(**{SHRINKAGE: "cpu;gpu"}), {}).shrinks == ("cpu:0", "gpu:0")


@pytest.mark.parametrize("devices", ["moon:0", "cpu:x", "cpu:1", "CPU:0", "cpu:0,gpu:0"])
def test_a_device_without_an_arena_is_refused_at_load_as_requests_would_be(devices):
    with pytest.raises(ConfigError, match=f"'{SHRINKAGE}' cannot be '{devices}': it must name devices, as cpu:0;gpu:0"):
        run_settings(config_with(**{SHRINKAGE: devices}), {})


def test_an_arena_that_is_switched_off_cannot_shrink():
    with pytest.raises(ConfigError, match="names cpu:0, which has no arena with 'enable_mem_arena' 0"):
        run_settings(config_with(**{SHRINKAGE: "cpu:0"}, enable_mem_arena="0"), {})


def test_older_cuda_parameters_become_options_of_the_provider():
    settings = run_settings(
        config_with(
            cudnn_conv_algo_search="1", gpu_mem_limit="1024", arena_extend_strategy="1", do_copy_in_default_stream="0"
        ),
        {},
    )

    assert settings.cuda == {
        "cudnn_conv_algo_search": "HEURISTIC",
        "arena_extend_strategy": "kSameAsRequested",
        "do_copy_in_default_stream": "0",
        "gpu_mem_limit": "1024",
    }


def test_all_bad_values_are_reported_at_once():
    config = config_with(intra_op_thread_count="many", inter_op_thread_count="-1", enable_mem_arena="perhaps")

    with pytest.raises(ConfigError) as caught:
        run_settings(config, {})

    assert [problem.message.partition(": ")[0] for problem in caught.value.problems] == [
        "'intra_op_thread_count' cannot be 'many'",
        "'inter_op_thread_count' cannot be '-1'",
        "'enable_mem_arena' cannot be 'perhaps'",
    ]
    assert caught.value.problems[0].path == "parameters[intra_op_thread_count]"


def test_an_unknown_graph_level_is_refused():
    with pytest.raises(ConfigError, match="optimisation level 3"):
        run_settings(parse_text("optimization { graph { level: 3 } }"), {})


def test_a_cuda_word_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="'cudnn_conv_algo_search' cannot be '7'"):
        run_settings(config_with(cudnn_conv_algo_search="7"), {})


def test_the_global_thread_pool_is_a_backend_setting():
    backend = {"enable-global-threadpool": "1", "intra_op_thread_count": "4", "inter_op_thread_count": "2"}

    settings = run_settings(ModelConfig(), backend)

    assert settings.global_threads == GlobalThreads(4, 2)


def test_thread_counts_of_the_backend_alone_start_no_global_pool():
    settings = run_settings(ModelConfig(), {"intra_op_thread_count": "4"})

    assert settings.global_threads is None


def test_a_misspelt_parameter_is_refused_and_others_are_the_users_own():
    config = config_with(intra_op_threads_count="1", my_own_note="x", execution_mode="0")

    with pytest.raises(ConfigError) as caught:
        run_settings(config, {})

    (problem,) = caught.value.problems
    assert problem.message == "ONNX Runtime has no parameter 'intra_op_threads_count'"
    assert problem.path == "parameters[intra_op_threads_count]"
    assert problem.hint == "did you mean 'intra_op_thread_count'?"

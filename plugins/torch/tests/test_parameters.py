"""What parameters of a configuration come to."""

import logging

import pytest
import torch

from naiad.errors import ConfigError
from naiad_config.text import parse_text
from naiad_torch import process
from naiad_torch.parameters import RunSettings, run_settings


def settings_of(runtime="", **parameters):
    written = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()
    )
    return run_settings(parse_text(f'name: "m" runtime: "{runtime}" {written}'), {})


def test_without_parameters_pytorch_decides():
    assert settings_of() == RunSettings()
    assert (settings_of().inference_mode, settings_of().intra_op_threads) == (True, None)


def test_a_module_in_python_says_nothing_of_threads_unless_it_is_asked_to():
    assert settings_of("model.py") == RunSettings()
    settings = settings_of("model.py", NUM_THREADS=3, NUM_INTEROP_THREADS=2)
    assert (settings.intra_op_threads, settings.inter_op_threads) == (3, 2)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_accelerators_are_refused(kind):
    requested = f'execution_accelerators {{ {kind}_execution_accelerator [ {{ name: "tensorrt" }} ] }}'

    with pytest.raises(ConfigError, match="PyTorch has no accelerator 'tensorrt'") as raised:
        run_settings(parse_text(f'name: "m" optimization {{ {requested} }}'), {})

    assert raised.value.problems[0].path == f"optimization.execution_accelerators.{kind}_execution_accelerator[0].name"


def test_every_parameter_is_read():
    assert settings_of(
        DISABLE_OPTIMIZED_EXECUTION="true",
        INFERENCE_MODE="0",
        DISABLE_CUDNN="yes",
        ENABLE_CACHE_CLEANING="1",
        ENABLE_WEIGHT_SHARING="on",
        ENABLE_TENSOR_FUSER="false",
        ENABLE_JIT_PROFILING="no",
        ENABLE_JIT_EXECUTOR="off",
        INTRA_OP_THREAD_COUNT=2,
        INTER_OP_THREAD_COUNT=3,
        MODEL_INIT_LIBRARY="init.so",
    ) == RunSettings(
        inference_mode=False,
        optimized_execution=False,
        cleans_cache=True,
        shares_weights=True,
        tensor_fuser=False,
        jit_profiling=False,
        jit_executor=False,
        disable_cudnn=True,
        intra_op_threads=2,
        inter_op_threads=3,
        init_library="init.so",
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"INFERENCE_MODE": "maybe"}, "'INFERENCE_MODE' cannot be 'maybe'"),
        ({"INTRA_OP_THREAD_COUNT": "0"}, "cannot be '0'"),
        ({"INTER_OP_THREAD_COUNT": "two"}, "a whole number"),
        ({"TORCH_COMPILE_OPTIONAL_PARAMETERS": "[1]"}, "it must be a JSON object"),
        ({"INFERENCE_MODES": "1"}, "PyTorch has no parameter 'INFERENCE_MODES' (did you mean 'INFERENCE_MODE'?)"),
    ],
)
def test_what_is_invalid_is_refused_with_its_key(parameters, message):
    with pytest.raises(ConfigError) as raised:
        settings_of(**parameters)

    assert message in str(raised.value)
    assert f"parameters[{next(iter(parameters))}]" in str(raised.value)


def test_compiling_is_asked_for_by_an_object_that_may_be_empty():
    assert settings_of(TORCH_COMPILE_OPTIONAL_PARAMETERS="{}").compile == {}
    assert settings_of().compile is None


def test_the_first_model_chooses_the_threads_of_the_process(monkeypatch, caplog):
    chosen = []
    monkeypatch.setattr(process, "_chosen", {})
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    logger = logging.LoggerAdapter(logging.getLogger("naiad.model"), {})

    for count in (2, 2, 3):
        process.configure_process(RunSettings(intra_op_threads=count), logger)

    assert chosen == [2]
    assert "INTRA_OP_THREAD_COUNT is 2 for the whole process already" in caplog.text

"""What parameters of a configuration come to."""

import pytest

from naiad.errors import ConfigError
from naiad_config.text import parse_text
from naiad_openvino.parameters import RunSettings, run_settings


def settings_of(**parameters):
    written = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()
    )
    return run_settings(parse_text(f'name: "m" {written}'), {})


def test_without_parameters_openvino_decides():
    assert settings_of() == RunSettings()


@pytest.mark.parametrize(
    "parameters",
    [
        {
            "PERFORMANCE_HINT": "latency",
            "INFERENCE_NUM_THREADS": "3",
            "COMPILATION_NUM_THREADS": "2",
            "NUM_STREAMS": "AUTO",
            "HINT_BF16": "YES",
            "ENABLE_CPU_PINNING": "NO",
            "SKIP_OV_DYNAMIC_BATCHSIZE": "YES",
        },
        {
            "PERFORMANCE_HINT": "LATENCY",
            "CPU_THREADS_NUM": "3",
            "COMPILATION_NUM_THREADS": "2",
            "CPU_THROUGHPUT_STREAMS": "CPU_THROUGHPUT_AUTO",
            "ENFORCE_BF16": "YES",
            "CPU_BIND_THREAD": "NO",
            "SKIP_DYNAMIC_BATCHSIZE": "YES",
        },
    ],
    ids=["today's names", "old names"],
)
def test_every_parameter_is_read(parameters):
    assert settings_of(**parameters) == RunSettings(
        properties={
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": 3,
            "COMPILATION_NUM_THREADS": 2,
            "NUM_STREAMS": "AUTO",
            "ENABLE_CPU_PINNING": "NO",
            "INFERENCE_PRECISION_HINT": "bf16",
        },
        keeps_batch=True,
    )


def test_bf16_can_be_refused_where_the_processor_would_choose_it():
    assert settings_of(HINT_BF16="NO").properties == {"INFERENCE_PRECISION_HINT": "f32"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"PERFORMANCE_HINT": "FAST"}, "it must be LATENCY, THROUGHPUT or CUMULATIVE_THROUGHPUT"),
        ({"CPU_THREADS_NUM": "0"}, "'CPU_THREADS_NUM' cannot be '0'"),
        ({"NUM_STREAMS": "many"}, "a whole number"),
        ({"HINT_BF16": "perhaps"}, "'HINT_BF16' cannot be 'perhaps'"),
        ({"HINT_BF61": "YES"}, "did you mean 'HINT_BF16'?"),
    ],
)
def test_what_is_invalid_is_refused_with_its_key(parameters, message):
    with pytest.raises(ConfigError) as raised:
        settings_of(**parameters)

    assert message in str(raised.value)
    assert f"parameters[{next(iter(parameters))}]" in str(raised.value)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_accelerators_are_refused(kind):
    requested = f'optimization {{ execution_accelerators {{ {kind}_execution_accelerator {{ name: "tensorrt" }} }} }}'

    with pytest.raises(ConfigError, match="OpenVINO has no execution accelerator 'tensorrt'"):
        run_settings(parse_text(f'name: "m" {requested}'), {})

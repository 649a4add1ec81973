"""What parameters of a configuration come to."""

import pytest

from naiad.errors import ConfigError
from naiad_caffe2.parameters import run_settings
from naiad_config.text import parse_text
from naiad_kit.backends.onnx_runtime import SessionSettings


def config_of(written="", **parameters):
    entries = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()
    )
    return parse_text(f'name: "m" {entries} {written}')


def test_without_parameters_onnx_runtime_decides():
    assert run_settings(config_of(), {}) == SessionSettings()


def test_every_parameter_is_read():
    config = config_of(
        "optimization { graph { level: 1 } }",
        intra_op_thread_count="3",
        inter_op_thread_count="2",
        execution_mode="1",
    )

    assert run_settings(config, {}) == SessionSettings(3, 2, True, "ORT_ENABLE_EXTENDED")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            config_of(intra_op_thread_count="many"),
            "'intra_op_thread_count' cannot be 'many': ",
        ),
        (config_of(intra_op_thread_cout="3"), "did you mean 'intra_op_thread_count'?"),
        (config_of("optimization { graph { level: 7 } }"), "optimisation level 7"),
        (
            config_of('optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }'),
            "there are no execution accelerators for nets of Caffe2",
        ),
    ],
)
def test_what_is_invalid_is_refused(config, message):
    with pytest.raises(ConfigError) as raised:
        run_settings(config, {})

    assert message in str(raised.value)

"""Parameters of a configuration for TensorFlow, and the session options that they become."""

import logging

import pytest

from naiad.errors import ConfigError
from naiad_config.text import parse_text
from naiad_tensorflow import process
from naiad_tensorflow.parameters import RunSettings, run_settings
from naiad_tensorflow.sessions import session_config

from .conftest import tf


def settings_of(written="", backend=None, **parameters):
    written += "".join(
        f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()
    )
    return run_settings(parse_text(f'name: "m" {written}'), backend or {})


def accelerated(name, kind="gpu", **parameters):
    sent = " ".join(f'parameters {{ key: "{key}" value: "{value}" }}' for key, value in parameters.items())
    accelerator = f'{kind}_execution_accelerator [{{ name: "{name}" {sent} }}]'
    return f"optimization {{ execution_accelerators {{ {accelerator} }} }}"


def test_without_parameters_tensorflow_decides():
    assert settings_of() == RunSettings()


def test_every_parameter_is_read():
    assert settings_of(
        'optimization { graph { level: 1 } } model_operations { op_library_filename: [ "a.so" ] }',
        {"allow-soft-placement": "false", "gpu-memory-fraction": "0.5"},
        TF_NUM_INTRA_THREADS=2,
        TF_NUM_INTER_THREADS=3,
        TF_USE_PER_SESSION_THREADS="1",
        TF_GRAPH_TAG="mine, gpu",
        TF_SIGNATURE_DEF="other",
        MAX_SESSION_SHARE_COUNT=4,
        TF_INIT_OPS_FILE="init.json",
    ) == RunSettings(
        intra_op_threads=2,
        inter_op_threads=3,
        per_session_threads=True,
        tags=("mine", "gpu"),
        signature="other",
        shared_by=4,
        init_ops_file="init.json",
        jit_level=1,
        soft_placement=False,
        memory_fraction=0.5,
        libraries=("a.so",),
    )


def test_accelerators_are_read():
    sent = accelerated("tensorrt", precision_mode="fp16", minimum_segment_size="5")

    assert settings_of(sent).tensorrt == {
        "precision_mode": "FP16",
        "minimum_segment_size": 5,
        "max_workspace_size_bytes": 1 << 30,
        "maximum_cached_engines": 100,
    }
    assert settings_of(accelerated("auto_mixed_precision")).mixed_precision
    assert settings_of(accelerated("gpu_io")) == RunSettings()


@pytest.mark.parametrize(
    ("written", "parameters", "message"),
    [
        ("", {"TF_NUM_INTRA_THREADS": "-1"}, "'TF_NUM_INTRA_THREADS' cannot be '-1'"),
        ("", {"TF_NUM_INTER_THREADS": "two"}, "a whole number"),
        ("", {"TF_USE_PER_SESSION_THREADS": "perhaps"}, "cannot be 'perhaps'"),
        ("", {"TF_SIGNATURE_DEFF": "x"}, "did you mean 'TF_SIGNATURE_DEF'?"),
        (accelerated("tensorrt", precision_mode="FP8"), {}, "it must be one of FP32, FP16, INT8"),
        (accelerated("tensorrt", size="1"), {}, "'size' is not a parameter of TensorRT here"),
        (accelerated("magic"), {}, "there are tensorrt, auto_mixed_precision, gpu_io"),
        (accelerated("openvino", "cpu"), {}, "TensorFlow has no accelerator 'openvino' on a CPU"),
    ],
)
def test_what_is_invalid_is_refused(written, parameters, message):
    with pytest.raises(ConfigError) as raised:
        settings_of(written, **parameters)

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("key", "value"), [("gpu-memory-fraction", "2"), ("gpu-memory-fraction", "x"), ("allow-soft-placement", "x")]
)
def test_settings_of_the_backend_must_make_sense(key, value):
    with pytest.raises(ConfigError, match=f"'{key}' cannot be '{value}'"):
        settings_of("", {key: value})


def test_tensorflow_is_reported():
    session = session_config(
        RunSettings(
            intra_op_threads=2, per_session_threads=True, jit_level=-1, mixed_precision=True, memory_fraction=0.25
        ),
        "GPU",
    )

    assert (session.intra_op_parallelism_threads, session.use_per_session_threads, session.allow_soft_placement) == (
        2,
        1,
        1,
    )
    assert session.graph_options.optimizer_options.global_jit_level == tf.compat.v1.OptimizerOptions.OFF
    assert session.graph_options.rewrite_options.auto_mixed_precision == 1
    assert session.gpu_options.per_process_gpu_memory_fraction == 0.25
    assert "GPU" not in session.device_count
    assert session_config(RunSettings(jit_level=2), "CPU").graph_options.optimizer_options.global_jit_level == 2


def test_an_instance_on_a_cpu_takes_neither_a_gpu_nor_its_accelerators():
    session = session_config(RunSettings(mixed_precision=True, tensorrt={}), "CPU")

    assert session.device_count["GPU"] == 0
    assert session.graph_options.rewrite_options == type(session.graph_options.rewrite_options)()


def test_tensorrt_gets_its_parameters_by_tensorflow_s_own_names(monkeypatch):
    monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: {"is_tensorrt_build": True})

    session = session_config(settings_of(accelerated("tensorrt", max_cached_engines="7", precision_mode="INT8")), "GPU")

    (optimizer,) = session.graph_options.rewrite_options.custom_optimizers
    message = {key: value.s or value.i or value.b for key, value in optimizer.parameter_map.items()}
    assert message == {
        "is_dynamic_op": True,
        "maximum_cached_engines": 7,
        "max_workspace_size_bytes": 1 << 30,
        "minimum_segment_size": 3,
        "precision_mode": b"INT8",
    }


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"intra_op_threads": 3}, "TF_NUM_INTRA_THREADS is 2 when the first session of this process was opened, and 3"),
        ({"inter_op_threads": 3}, "TF_NUM_INTER_THREADS was left to TensorFlow when the first session"),
        ({"inter_op_threads": 3}, "give the model threads of its own with TF_USE_PER_SESSION_THREADS"),
        ({"inter_op_threads": 3, "per_session_threads": True}, ""),
        ({"inter_op_threads": 1, "intra_op_threads": 2}, ""),
    ],
)
def test_threads_that_the_process_has_already_are_reported(monkeypatch, caplog, second, message):
    monkeypatch.setattr(process, "_chosen", {})
    logger = logging.LoggerAdapter(logging.getLogger("naiad.model"))

    process.note_threads(RunSettings(intra_op_threads=2), logger)
    process.note_threads(RunSettings(**second), logger)

    assert message in caplog.text
    assert bool(caplog.text) is bool(message)

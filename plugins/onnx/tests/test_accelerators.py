"""The parameters of execution accelerators, and what is said of those that there are not."""

import pytest

from naiad.errors import ConfigError
from naiad_config.text import parse_text
from naiad_onnx.accelerators import accelerators_of

ON_GPU = ("tensorrt", "cuda")


def asking(accelerator, **parameters):
    side = "gpu" if accelerator in ON_GPU else "cpu"
    sent = "".join(f"parameters {{ key: '{key}' value: '{text}' }}" for key, text in parameters.items())
    requested = f"{side}_execution_accelerator [ {{ name: '{accelerator}' {sent} }} ]"
    return parse_text(f"name: 'm' optimization {{ execution_accelerators {{ {requested} }} }}")


def openvino(**parameters):
    return accelerators_of(asking("openvino", **parameters)).on_cpu["openvino"]


def refusal(accelerator, **parameters):
    with pytest.raises(ConfigError) as caught:
        accelerators_of(asking(accelerator, **parameters))
    (problem,) = caught.value.problems
    side = "gpu" if accelerator in ON_GPU else "cpu"
    (key,) = parameters
    assert problem.path == f"optimization.execution_accelerators.{side}_execution_accelerator[0].parameters[{key}]"
    return problem.message.removeprefix(f"execution accelerator '{accelerator}' of model 'm': ")


def test_openvino_computes_on_the_cpu_unless_reported():
    assert openvino() == {"device_type": "CPU"}


def test_openvino_takes_its_parameters_in_the_words_of_the_provider():
    assert openvino(num_of_threads="4", num_streams="2", disable_dynamic_shapes="1", enable_qdq_optimizer="no") == {
        "device_type": "CPU",
        "num_of_threads": "4",
        "num_streams": "2",
        "disable_dynamic_shapes": "True",
        "enable_qdq_optimizer": "False",
    }


@pytest.mark.parametrize("device", ["GPU", "GPU.1", "NPU", "AUTO:GPU,CPU", "HETERO:GPU.0,CPU", "MULTI:NPU,GPU,CPU"])
def test_off_the_cpu_openvino_keeps_the_precision_of_the_model_unless_reported(device):
    assert openvino(device_type=device) == {"device_type": device, "precision": "ACCURACY"}
    assert openvino(device_type=device, precision="FP16") == {"device_type": device, "precision": "FP16"}


@pytest.mark.parametrize("device", ["WARP", "cpu", "CPU.1", "AUTO", "BATCH:CPU(4)", "AUTO:WARP", "CPU,GPU", "GPU.x"])
def test_a_device_that_openvino_would_take_for_another_is_refused(device):
    assert refusal("openvino", device_type=device).startswith(
        f"'device_type' cannot be '{device}': it must be CPU, GPU"
    )


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("precision", "INT8", "it must be one of FP32, FP16, ACCURACY"),
        ("num_streams", "9", "it must be from 1 to 8"),
        ("model_priority", "low", "it must be one of LOW, MEDIUM, HIGH, DEFAULT"),
        ("load_config", "/etc/openvino.json", "it must be JSON (Expecting value: line 1 column 1 (char 0))"),
        ("load_config", "[]", 'it must be properties by device, as {"CPU": {"ENABLE_HYPER_THREADING": "NO"}}'),
    ],
)
def test_values_that_are_invalid_to_openvino_are_refused(key, text, message):
    assert refusal("openvino", **{key: text}) == f"'{key}' cannot be '{text}': {message}"


@pytest.mark.parametrize(
    ("key", "text"), [("num_streams", "many"), ("num_of_threads", "0"), ("disable_dynamic_shapes", "maybe")]
)
def test_values_of_another_type_are_refused(key, text):
    assert refusal("openvino", **{key: text}).startswith(f"'{key}' cannot be '{text}': ")


def test_unknown_parameters_are_reported_with_the_nearest_or_all():
    assert refusal("openvino", num_stream="2") == "unknown parameter 'num_stream'; did you mean 'num_streams'?"
    assert refusal("openvino", colour="red").startswith("unknown parameter 'colour'; there are device_type, precision,")
    assert refusal("tensorrt", precision_mod="FP16") == (
        "unknown parameter 'precision_mod'; did you mean 'precision_mode'?"
    )
    assert refusal("tensorrt", colour="red").endswith("options of ONNX Runtime begin with 'trt_'")
    assert refusal("cuda", use_tf23="0") == "unknown parameter 'use_tf23'; did you mean 'use_tf32'?"


def test_an_option_of_cuda_that_a_later_build_may_know_is_handed_on():
    requested = accelerators_of(asking("cuda", use_tf32="0", colour="red"))

    assert requested.on_gpu == {"cuda": {"use_tf32": "0", "colour": "red"}}


@pytest.mark.parametrize(
    ("accelerator", "key"),
    [
        ("openvino", "context"),
        ("openvino", "device_id"),
        ("cuda", "device_id"),
        ("cuda", "user_compute_stream"),
        ("cuda", "gpu_external_alloc"),
        ("tensorrt", "device_id"),
    ],
)
def test_what_the_server_decides_and_addresses_in_memory_cannot_be_given(accelerator, key):
    assert refusal(accelerator, **{key: "1"}).startswith(f"'{key}' cannot be given: ")


def test_a_precision_that_tensorrt_lacks_is_refused():
    assert refusal("tensorrt", precision_mode="FP8") == "precision_mode 'FP8' is none of FP32, FP16, BF16, INT8"


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        accelerators_of(asking("openvino", num_streams="0", device_type="WARP", colour="red"))

    assert len(caught.value.problems) == 3

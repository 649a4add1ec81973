"""Execution providers for each kind of instance and accelerator."""

import pytest

from naiad.errors import ConfigError, UnsupportedError
from naiad_config import ModelConfig
from naiad_config.text import parse_text
from naiad_onnx.accelerators import accelerators_of
from naiad_onnx.parameters import RunSettings
from naiad_onnx.providers import providers_for

CPU_BUILD = ["AzureExecutionProvider", "CPUExecutionProvider"]
GPU_BUILD = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
OPENVINO_BUILD = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
CPU = ("CPUExecutionProvider", {})


def asking(accelerators: str) -> ModelConfig:
    return parse_text(f'name: "m" optimization {{ execution_accelerators {{ {accelerators} }} }}')


def test_a_cpu_instance_runs_on_the_cpu_whatever_the_build_offers():
    assert providers_for(ModelConfig(), RunSettings(), "CPU", 0, GPU_BUILD) == [CPU]


def test_a_gpu_instance_runs_on_its_device_with_the_cpu_behind():
    providers = providers_for(ModelConfig(), RunSettings(), "GPU", 2, GPU_BUILD)

    assert providers == [("CUDAExecutionProvider", {"device_id": "2"}), CPU]


def test_kind_model_takes_the_gpu_where_there_is_one():
    on_gpu = providers_for(ModelConfig(), RunSettings(), "MODEL", 0, GPU_BUILD)
    on_cpu = providers_for(ModelConfig(), RunSettings(), "MODEL", 0, CPU_BUILD)

    assert on_gpu[0][0] == "CUDAExecutionProvider"
    assert on_cpu == [CPU]


def test_a_gpu_instance_on_a_cpu_build_says_what_to_install():
    with pytest.raises(UnsupportedError) as caught:
        providers_for(ModelConfig(name="m"), RunSettings(), "GPU", 0, CPU_BUILD)

    reason = str(caught.value)
    assert "no CUDAExecutionProvider" in reason
    assert "it has AzureExecutionProvider, CPUExecutionProvider" in reason
    assert "pip install 'naiad-onnx[gpu]'" in reason


def test_tensorrt_comes_before_cuda_with_its_options_translated():
    config = asking(
        """
        gpu_execution_accelerator [ {
          name: "tensorrt"
          parameters { key: "precision_mode" value: "FP16" }
          parameters { key: "max_workspace_size_bytes" value: "1073741824" }
          parameters { key: "trt_engine_cache_enable" value: "1" }
          parameters { key: "trt_engine_cache_path" value: "/cache" }
          parameters { key: "int8_use_native_calibration_table" value: "false" }
        } ]
        """
    )

    providers = providers_for(config, RunSettings(), "GPU", 1, GPU_BUILD)

    assert providers == [
        (
            "TensorrtExecutionProvider",
            {
                "device_id": "1",
                "trt_fp16_enable": "True",
                "trt_max_workspace_size": "1073741824",
                "trt_engine_cache_enable": "True",
                "trt_engine_cache_path": "/cache",
                "trt_int8_use_native_calibration_table": "False",
            },
        ),
        ("CUDAExecutionProvider", {"device_id": "1"}),
        CPU,
    ]


@pytest.mark.parametrize(
    ("mode", "options"),
    [("FP32", {}), ("BF16", {"trt_bf16_enable": "True"}), ("INT8", {"trt_int8_enable": "True"})],
)
def test_precision_modes_switch_the_option_of_their_name(mode, options):
    config = asking(
        f'gpu_execution_accelerator [ {{ name: "tensorrt" parameters {{ key: "precision_mode" value: "{mode}" }} }} ]'
    )

    providers = providers_for(config, RunSettings(), "GPU", 0, GPU_BUILD)

    assert providers[0][1] == {"device_id": "0", **options}


def test_options_of_the_cuda_accelerator_win_over_older_parameters():
    config = asking('gpu_execution_accelerator [ { name: "cuda" parameters { key: "gpu_mem_limit" value: "2048" } } ]')
    settings = RunSettings(cuda={"gpu_mem_limit": "1024", "arena_extend_strategy": "kSameAsRequested"})

    providers = providers_for(config, settings, "GPU", 0, GPU_BUILD)

    assert providers[0][1] == {"device_id": "0", "gpu_mem_limit": "2048", "arena_extend_strategy": "kSameAsRequested"}


def test_openvino_comes_before_the_cpu_with_the_threads_of_the_model():
    config = asking('cpu_execution_accelerator [ { name: "openvino" parameters { key: "num_streams" value: "2" } } ]')

    providers = providers_for(config, RunSettings(intra_op_threads=3), "CPU", 0, OPENVINO_BUILD)

    options = {"num_of_threads": "3", "device_type": "CPU", "num_streams": "2"}
    assert providers == [("OpenVINOExecutionProvider", options), CPU]


def test_openvino_has_no_part_in_instances_on_a_gpu():
    config = asking('cpu_execution_accelerator [ { name: "openvino" } ]')

    assert [name for name, _ in providers_for(config, RunSettings(), "GPU", 0, GPU_BUILD)] == [
        "CUDAExecutionProvider",
        "CPUExecutionProvider",
    ]
    with pytest.raises(UnsupportedError, match=r"asks for a GPU, .* no CUDAExecutionProvider \(it has OpenVINOExec"):
        providers_for(config, RunSettings(), "GPU", 0, OPENVINO_BUILD)


def test_an_accelerator_that_the_build_lacks_is_reported_with_its_package():
    config = asking('cpu_execution_accelerator [ { name: "openvino" } ]')

    with pytest.raises(UnsupportedError) as caught:
        providers_for(config, RunSettings(), "CPU", 0, CPU_BUILD)

    message = str(caught.value)
    assert message.startswith("model 'm' asks for the execution accelerator 'openvino', ")
    assert "no OpenVINOExecutionProvider (it has AzureExecutionProvider, CPUExecutionProvider)" in message
    assert message.endswith(
        "pip uninstall onnxruntime, which has the same module, and pip install 'naiad-onnx[openvino]'"
    )


def test_unknown_accelerators_are_all_reported():
    config = asking(
        'gpu_execution_accelerator [ { name: "cuda" }, { name: "warp" } ] '
        'cpu_execution_accelerator [ { name: "cuda" } ]'
    )

    with pytest.raises(ConfigError) as caught:
        accelerators_of(config)

    assert [problem.message for problem in caught.value.problems] == [
        "unknown Execution Accelerator 'warp' is requested for model 'm'",
        "unknown Execution Accelerator 'cuda' is requested for model 'm'",
    ]
    assert caught.value.problems[0].path == "optimization.execution_accelerators.gpu_execution_accelerator[1].name"
    assert caught.value.problems[0].hint == "on the GPU there is tensorrt and cuda"

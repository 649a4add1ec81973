"""Execution accelerators of a configuration, with their parameters as options of ONNX Runtime. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from naiad.errors import ConfigError, Problem
from naiad.options import boolean
from naiad_config import Accelerator, ExecutionAccelerators, ModelConfig
from naiad_config.mistakes import nearest
from naiad_onnx.openvino import openvino_options

_Options = dict[str, str]

_TENSORRT_NAMES = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_PRECISION = {"FP32": "", "FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}
_FORBIDDEN_OPTIONS = {
    "device_id": "the instance group says on which device an instance is",
    "user_compute_stream": "it is an address in memory",
    "has_user_compute_stream": "it announces an address in memory",
    "gpu_external_alloc": "it is an address in memory",
    "gpu_external_free": "it is an address in memory",
    "gpu_external_empty_cache": "it is an address in memory",
}
_CUDA_OPTIONS = (
    "arena_extend_strategy",
    "cudnn_conv1d_pad_to_nc1d",
    "cudnn_conv_algo_search",
    "cudnn_conv_use_max_workspace",
    "do_copy_in_default_stream",
    "enable_cuda_graph",
    "enable_skip_layer_norm_strict_mode",
    "fuse_conv_bias",
    "gpu_mem_limit",
    "prefer_nhwc",
    "sdpa_kernel",
    "tunable_op_enable",
    "tunable_op_max_tuning_duration_ms",
    "tunable_op_tuning_enable",
    "use_ep_level_unified_stream",
    "use_tf32",
)


@dataclass(frozen=True, slots=True)
class Accelerators:
    """The accelerators for GPUs and for the CPU: name to options of ONNX Runtime."""

    on_gpu: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    on_cpu: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def accelerators_of(config: ModelConfig) -> Accelerators:
    """The accelerators of a configuration.

    Raises ConfigError with each unknown accelerator, and each parameter that is unknown or has an invalid value.
    """
    policy = config.optimization
    configured = (policy.execution_accelerators if policy is not None else None) or ExecutionAccelerators()
    problems: list[Problem] = []
    gpu = _read(config.name, "gpu", configured.gpu_execution_accelerator, _ON_GPU, problems)
    cpu = _read(config.name, "cpu", configured.cpu_execution_accelerator, _ON_CPU, problems)
    if problems:
        raise ConfigError(problems)
    return Accelerators(gpu, cpu)


def _read(
    model: str,
    side: str,
    accelerators: Sequence[Accelerator],
    known: Mapping[str, Callable[[Mapping[str, str]], tuple[_Options, Mapping[str, str]]]],
    problems: list[Problem],
) -> dict[str, _Options]:
    read: dict[str, _Options] = {}
    for index, accelerator in enumerate(accelerators):
        path = f"optimization.execution_accelerators.{side}_execution_accelerator[{index}]"
        if accelerator.name not in known:
            message = f"unknown Execution Accelerator '{accelerator.name}' is requested for model '{model}'"
            hint = f"on the {side.upper()} there is {' and '.join(known)}"
            problems.append(Problem(message, f"{path}.name", hint=hint))
            continue
        options, mistakes = known[accelerator.name](accelerator.parameters)
        problems += [
            Problem(
                f"execution accelerator '{accelerator.name}' of model '{model}': {message}", f"{path}.parameters[{key}]"
            )
            for key, message in mistakes.items()
        ]
        read[accelerator.name] = read.get(accelerator.name, {}) | options
    return read


def _tensorrt_options(parameters: Mapping[str, str]) -> tuple[_Options, Mapping[str, str]]:
    options: _Options = {}
    mistakes: dict[str, str] = {}
    for key, text in parameters.items():
        if key == "precision_mode" and text in _PRECISION:
            options |= {_PRECISION[text]: "True"} if _PRECISION[text] else {}
        elif key == "precision_mode":
            mistakes[key] = f"precision_mode '{text}' is none of {', '.join(_PRECISION)}"
        elif key in _FORBIDDEN_OPTIONS:
            mistakes[key] = f"'{key}' cannot be given: {_FORBIDDEN_OPTIONS[key]}"
        elif key in _TENSORRT_NAMES or key.startswith("trt_"):
            name = _TENSORRT_NAMES.get(key, key)
            options[name] = _flag(text) if name.endswith(("_enable", "_table")) else text
        else:
            near = nearest(key, ("precision_mode", *_TENSORRT_NAMES))
            hint = f"did you mean '{near}'?" if near else "options of ONNX Runtime begin with 'trt_'"
            mistakes[key] = f"unknown parameter '{key}'; {hint}"
    return options, mistakes


def _cuda_options(parameters: Mapping[str, str]) -> tuple[_Options, Mapping[str, str]]:
    """Any option of the provider, which refuses those it does not know; a later build may know more than are here."""
    mistakes: dict[str, str] = {}
    for key in parameters:
        near = "" if key in _CUDA_OPTIONS else nearest(key, _CUDA_OPTIONS, 0.8)
        if key in _FORBIDDEN_OPTIONS:
            mistakes[key] = f"'{key}' cannot be given: {_FORBIDDEN_OPTIONS[key]}"
        elif near:
            mistakes[key] = f"unknown parameter '{key}'; did you mean '{near}'?"
    return dict(parameters), mistakes


def _flag(text: str) -> str:
    """ONNX Runtime takes True and False for the switches of TensorRT, and no numbers."""
    try:
        return str(boolean(text))
    except ValueError:
        return text


_ON_GPU = {"tensorrt": _tensorrt_options, "cuda": _cuda_options}
_ON_CPU = {"openvino": openvino_options}

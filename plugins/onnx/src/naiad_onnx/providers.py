"""Which execution providers run a model on a device, from the execution accelerators that it asks for. Pure."""

from collections.abc import Mapping, Sequence

from naiad.config import Accelerator, ExecutionAccelerators, ModelConfig
from naiad.config.mistakes import nearest
from naiad.errors import ConfigError, InvalidArgumentError, Problem, UnsupportedError
from naiad.options import boolean
from naiad_onnx.parameters import RunSettings
from naiad_onnx.runtime import CPU_PROVIDER, CUDA_PROVIDER

Provider = tuple[str, dict[str, str]]
"""An execution provider's name and its options, as ONNX Runtime takes them."""

_ACCELERATORS = {
    "tensorrt": "TensorrtExecutionProvider",
    "cuda": CUDA_PROVIDER,
    "openvino": "OpenVINOExecutionProvider",
}
_GPU = ("tensorrt", "cuda")
_CPU = ("openvino",)
_INSTALLED_WITH = {
    "tensorrt": "pip install 'naiad-onnx[gpu]', and TensorRT itself",
    "cuda": "pip install 'naiad-onnx[gpu]' in place of 'naiad-onnx[cpu]'",
    "openvino": "pip install onnxruntime-openvino in place of onnxruntime",
}
_TENSORRT_NAMES = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_PRECISION = {"FP32": "", "FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}


def accelerators_of(config: ModelConfig) -> ExecutionAccelerators:
    """The accelerators of a configuration. Raises ConfigError when there is one that nobody knows."""
    policy = config.optimization
    asked = (policy.execution_accelerators if policy is not None else None) or ExecutionAccelerators()
    problems = [
        *_unknown(config.name, "gpu", asked.gpu_execution_accelerator, _GPU),
        *_unknown(config.name, "cpu", asked.cpu_execution_accelerator, _CPU),
    ]
    if problems:
        raise ConfigError(problems)
    return asked


def providers_for(
    config: ModelConfig, settings: RunSettings, kind: str, device: int, available: Sequence[str]
) -> list[Provider]:
    """The providers for an instance of that kind (`CPU`, `GPU`, `MODEL`), the first choice first, the CPU last.

    KIND_MODEL takes the GPU where ONNX Runtime has a provider for it. Raises UnsupportedError when this build of ONNX
    Runtime lacks one, and InvalidArgumentError for an option that an accelerator does not have.
    """
    asked = accelerators_of(config)
    on_gpu = kind == "GPU" or (kind == "MODEL" and CUDA_PROVIDER in available)
    if on_gpu:
        chosen = _on_gpu(asked.gpu_execution_accelerator, settings, device)
    else:
        chosen = [(given.name, dict(given.parameters)) for given in asked.cpu_execution_accelerator]
    for name, _ in chosen:
        if _ACCELERATORS[name] not in available:
            raise UnsupportedError(_missing(config.name, name, available))
    return [*((_ACCELERATORS[name], options) for name, options in chosen), (CPU_PROVIDER, {})]


def _on_gpu(asked: Sequence[Accelerator], settings: RunSettings, device: int) -> list[Provider]:
    """TensorRT when asked for, and CUDA in any case: it runs what TensorRT cannot."""
    chosen: list[Provider] = []
    cuda = dict(settings.cuda)
    for given in asked:
        if given.name == "tensorrt":
            chosen = [("tensorrt", {"device_id": str(device), **_tensorrt_options(given.parameters)})]
        else:
            cuda |= given.parameters
    return [*chosen, ("cuda", {"device_id": str(device), **cuda})]


def _tensorrt_options(parameters: Mapping[str, str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for key, text in parameters.items():
        if key == "precision_mode":
            options |= _precision(text)
        elif key in _TENSORRT_NAMES or key.startswith("trt_"):
            name = _TENSORRT_NAMES.get(key, key)
            options[name] = _flag(text) if name.endswith(("_enable", "_table")) else text
        else:
            near = nearest(key, ("precision_mode", *_TENSORRT_NAMES))
            hint = f"did you mean '{near}'?" if near else "options of ONNX Runtime begin with 'trt_'"
            raise InvalidArgumentError(f"unknown parameter '{key}' for the execution accelerator 'tensorrt'; {hint}")
    return options


def _precision(text: str) -> dict[str, str]:
    if text not in _PRECISION:
        modes = ", ".join(_PRECISION)
        raise InvalidArgumentError(
            f"precision_mode '{text}' of the execution accelerator 'tensorrt' is none of {modes}"
        )
    return {_PRECISION[text]: "True"} if _PRECISION[text] else {}


def _flag(text: str) -> str:
    """ONNX Runtime takes True and False for the switches of TensorRT, and no numbers."""
    try:
        return str(boolean(text))
    except ValueError:
        return text


def _unknown(model: str, side: str, asked: Sequence[Accelerator], known: Sequence[str]) -> list[Problem]:
    return [
        Problem(
            f"unknown Execution Accelerator '{given.name}' is requested for model '{model}'",
            f"optimization.execution_accelerators.{side}_execution_accelerator[{index}].name",
            hint=f"on the {side.upper()} there is {' and '.join(known)}",
        )
        for index, given in enumerate(asked)
        if given.name not in known
    ]


def _missing(model: str, accelerator: str, available: Sequence[str]) -> str:
    wanted = "a GPU" if accelerator == "cuda" else f"the execution accelerator '{accelerator}'"
    return (
        f"model '{model}' asks for {wanted}, and this build of ONNX Runtime has no {_ACCELERATORS[accelerator]} "
        f"(it has {', '.join(available)}); {_INSTALLED_WITH[accelerator]}"
    )

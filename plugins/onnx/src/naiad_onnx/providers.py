"""Choice of the execution providers for a device, from the execution accelerators of a configuration. Pure."""

from collections.abc import Sequence

from naiad_config import ModelConfig
from naiad_kit.backends.onnx_runtime import CPU_PROVIDER, CUDA_PROVIDER, Provider, missing_provider, runs_on_gpu
from naiad_onnx.accelerators import Accelerators, accelerators_of
from naiad_onnx.parameters import RunSettings

OPENVINO_PROVIDER = "OpenVINOExecutionProvider"

_PROVIDERS = {
    "tensorrt": "TensorrtExecutionProvider",
    "cuda": CUDA_PROVIDER,
    "openvino": OPENVINO_PROVIDER,
}
_INSTALLED_WITH = {
    "tensorrt": "pip install 'naiad-onnx[gpu]', and TensorRT itself",
    "cuda": "pip install 'naiad-onnx[gpu]' in place of 'naiad-onnx[cpu]'",
    "openvino": "pip uninstall onnxruntime, which has the same module, and pip install 'naiad-onnx[openvino]'",
}


def providers_for(
    config: ModelConfig, settings: RunSettings, kind: str, device: int, available: Sequence[str]
) -> list[Provider]:
    """The providers for an instance of that kind (`CPU`, `GPU`, `MODEL`), the first choice first, the CPU last.

    KIND_MODEL takes the GPU where ONNX Runtime has a provider for it. Raises UnsupportedError when this build of ONNX
    Runtime lacks one, and ConfigError for an accelerator or a parameter of one that there is not.
    """
    accelerators = accelerators_of(config)
    chosen = (
        _on_gpu(accelerators, settings, device) if runs_on_gpu(kind, available) else _on_cpu(accelerators, settings)
    )
    for name, _ in chosen:
        if _PROVIDERS[name] not in available:
            feature = "a GPU" if name == "cuda" else f"the execution accelerator '{name}'"
            raise missing_provider(config.name, feature, _PROVIDERS[name], available, _INSTALLED_WITH[name])
    return [*((_PROVIDERS[name], options) for name, options in chosen), (CPU_PROVIDER, {})]


def _on_gpu(accelerators: Accelerators, settings: RunSettings, device: int) -> list[Provider]:
    """TensorRT where the configuration names it, and CUDA in any case: it runs what TensorRT cannot."""
    device_id = {"device_id": str(device)}
    first = (
        [("tensorrt", {**device_id, **accelerators.on_gpu["tensorrt"]})] if "tensorrt" in accelerators.on_gpu else []
    )
    return [*first, ("cuda", {**device_id, **settings.cuda, **accelerators.on_gpu.get("cuda", {})})]


def _on_cpu(accelerators: Accelerators, settings: RunSettings) -> list[Provider]:
    """OpenVINO where the configuration names it, with as many threads as the model's operators may have."""
    threads = {"num_of_threads": str(settings.intra_op_threads)} if settings.intra_op_threads else {}
    return [(name, {**threads, **options}) for name, options in accelerators.on_cpu.items()]

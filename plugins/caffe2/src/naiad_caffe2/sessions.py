"""ONNX Runtime sessions over translated nets."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_config import InstanceKind, ModelConfig
from naiad_kit.backends.frameworks import import_framework
from naiad_kit.backends.onnx_runtime import (
    CHECK_DRIVER,
    CPU_PROVIDER,
    CUDA_PROVIDER,
    Provider,
    SessionSettings,
    describe_error,
    missing_provider,
    onnx_runtime,
    runs_on_gpu,
    session_options,
)
from naiad_kit.backends.onnx_runtime import open_session as open_runtime_session

Device = tuple[str, int]
"""`CPU` or `GPU`, and its number."""

_PLUGIN = "naiad-caffe2"


def runtime() -> ModuleType:
    """The module `onnxruntime`. Raises PluginError, with what to install, when it or `onnx` is missing or broken."""
    import_framework("onnx", "the package onnx", _PLUGIN, f"run pip install '{_PLUGIN}[cpu]'")
    return onnx_runtime(_PLUGIN)


def devices_of(config: ModelConfig) -> list[Device]:
    """The devices of a model's instances; KIND_MODEL is the first GPU where ONNX Runtime can use one."""
    devices: list[Device] = []
    for group in config.instance_group:
        if group.kind is InstanceKind.KIND_GPU:
            devices += [("GPU", device) for device in group.gpus or (0,)]
        else:
            devices.append(device_of("MODEL" if group.kind is InstanceKind.KIND_MODEL else "CPU", 0))
    return list(dict.fromkeys(devices)) or [("CPU", 0)]


def device_of(kind: str, device: int) -> Device:
    """The device of an instance of that kind (`CPU`, `GPU`, `MODEL`)."""
    on_gpu = runs_on_gpu(kind, runtime().get_available_providers())
    return ("GPU" if on_gpu else "CPU"), device if kind == "GPU" else 0


def open_session(
    graph: Any, weights: Mapping[str, np.ndarray], model: str, settings: SessionSettings, device: Device
) -> Any:
    """An `onnxruntime.InferenceSession` there, which many instances may run at once.

    `graph` is an `onnx.ModelProto` and `weights` its external data, which the session copies.

    Raises InvalidArgumentError when ONNX Runtime refuses the graph, UnsupportedError when there is no such device.
    """
    onnxruntime = runtime()
    kind, number = device
    providers: list[Provider] = [(CPU_PROVIDER, {})]
    if kind == "GPU":
        available = onnxruntime.get_available_providers()
        if CUDA_PROVIDER not in available:
            step = f"pip install '{_PLUGIN}[gpu]' in place of '{_PLUGIN}[cpu]'"
            raise missing_provider(model, "a GPU", CUDA_PROVIDER, available, step)
        providers.insert(0, (CUDA_PROVIDER, {"device_id": str(number)}))
    options = session_options(onnxruntime, settings)
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    try:
        return open_runtime_session(onnxruntime, graph.SerializeToString(), options, providers, model)
    except UnsupportedError:
        raise
    except Exception as error:
        step = CHECK_DRIVER if kind == "GPU" else "mend the net, or report it when Caffe2 took it"
        raise InvalidArgumentError(
            f"ONNX Runtime cannot load the translated net of model '{model}': {describe_error(error)}; {step}"
        ) from error

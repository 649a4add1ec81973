"""Opening a session of ONNX Runtime over a translated net."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_caffe2.parameters import RunSettings
from naiad_caffe2.runtime import CPU_PROVIDER, CUDA_PROVIDER, describe_error, runtime
from naiad_config import InstanceKind, ModelConfig

Place = tuple[str, int]
"""`CPU` or `GPU`, and the number of the device."""

_FATAL = 4
_CHECK_DRIVER = "check that the driver and the libraries of CUDA are installed and fit this build of ONNX Runtime"


def places_of(config: ModelConfig) -> list[Place]:
    """Where the instances of a model will live; KIND_MODEL is the first GPU where ONNX Runtime can use one."""
    found: list[Place] = []
    for group in config.instance_group:
        if group.kind is InstanceKind.KIND_GPU:
            found += [("GPU", device) for device in group.gpus or (0,)]
        else:
            found.append(place_of("MODEL" if group.kind is InstanceKind.KIND_MODEL else "CPU", 0))
    return list(dict.fromkeys(found)) or [("CPU", 0)]


def place_of(kind: str, device: int) -> Place:
    """The place of an instance of that kind (`CPU`, `GPU`, `MODEL`)."""
    if kind == "GPU":
        return "GPU", device
    return ("GPU" if kind == "MODEL" and CUDA_PROVIDER in runtime().get_available_providers() else "CPU"), 0


def open_session(graph: Any, weights: Mapping[str, np.ndarray], model: str, settings: RunSettings, place: Place) -> Any:
    """An `onnxruntime.InferenceSession` there, which many instances may run at once.

    `graph` is an `onnx.ModelProto` and `weights` its external data, which the session copies.

    Raises InvalidArgumentError when ONNX Runtime refuses the graph, UnsupportedError when there is no such device.
    """
    onnxruntime = runtime()
    kind, device = place
    providers: list[tuple[str, dict[str, str]]] = [(CPU_PROVIDER, {})]
    if kind == "GPU":
        available = onnxruntime.get_available_providers()
        if CUDA_PROVIDER not in available:
            raise UnsupportedError(
                f"model '{model}' asks for a GPU, and this build of ONNX Runtime has no {CUDA_PROVIDER} (it has "
                f"{', '.join(available)}); pip install 'naiad-caffe2[gpu]' in place of 'naiad-caffe2[cpu]'"
            )
        onnxruntime.preload_dlls()
        providers.insert(0, (CUDA_PROVIDER, {"device_id": str(device)}))
    try:
        session = onnxruntime.InferenceSession(
            graph.SerializeToString(),
            sess_options=_options(settings, weights),
            providers=providers,
            enable_fallback=False,
        )
    except Exception as error:
        step = _CHECK_DRIVER if kind == "GPU" else "mend the net, or report it when Caffe2 took it"
        raise InvalidArgumentError(
            f"ONNX Runtime cannot load the translated net of model '{model}': {describe_error(error)}; {step}"
        ) from error
    if providers[0][0] not in session.get_providers():
        raise UnsupportedError(f"ONNX Runtime could not start {CUDA_PROVIDER} for model '{model}'; {_CHECK_DRIVER}")
    return session


def _options(settings: RunSettings, weights: Mapping[str, np.ndarray]) -> Any:
    onnxruntime = runtime()
    options = onnxruntime.SessionOptions()
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    options.log_severity_level = _FATAL
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, settings.graph_level)
    mode = onnxruntime.ExecutionMode
    options.execution_mode = mode.ORT_PARALLEL if settings.parallel else mode.ORT_SEQUENTIAL
    options.intra_op_num_threads = settings.intra_op_threads
    options.inter_op_num_threads = settings.inter_op_threads
    return options

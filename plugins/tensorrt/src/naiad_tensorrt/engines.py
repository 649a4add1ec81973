"""Opening of engines on a device: runtime of TensorRT, plugin libraries, and errors."""

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_tensorrt.description import EngineDescription
from naiad_tensorrt.reading import description_of
from naiad_tensorrt.runtime import complaints, logger_of, runtime_for

_NO_CORE = -1


@dataclass(frozen=True, slots=True)
class Opening:
    """How to open an engine.

    `libraries` hold plugins that it uses. `version_compatible` allows the code that a version-compatible engine brings
    along. `weight_budget` is the bytes of its weights to keep on the device, None to leave that to TensorRT.
    `dla_core` is the core of the deep-learning accelerator to run on, -1 for none.
    """

    libraries: tuple[Path, ...] = ()
    version_compatible: bool = False
    weight_budget: int | None = None
    dla_core: int = _NO_CORE


@dataclass(frozen=True, slots=True)
class OpenEngine:
    """An engine on a device: TensorRT's module, its `ICudaEngine`, its description, and the bytes of its weights.

    `runtime` made it and lives as long.
    """

    trt: ModuleType
    runtime: Any
    engine: Any
    description: EngineDescription
    weights: int


def open_engine(plan: bytes, model: str, opening: Opening) -> OpenEngine:
    """The engine of these bytes on the current device of this thread.

    Raises InvalidArgumentError, with what TensorRT says, when it cannot be read, UnsupportedError when the device lacks
    what is asked of it, and PluginError when the library for it is not installed.
    """
    trt = runtime_for(plan, model)
    runtime = _new_runtime(trt)  # before plugins, whose registry has no log of its own
    register_plugins(trt, opening.libraries, model)
    if opening.version_compatible:
        runtime.engine_host_code_allowed = True
    if opening.dla_core != _NO_CORE:
        if opening.dla_core >= runtime.num_DLA_cores:
            raise UnsupportedError(
                f"model '{model}' needs core {opening.dla_core} of the deep-learning accelerator (DLA), and this "
                f"device has {runtime.num_DLA_cores} cores of it; leave secondary_devices out"
            )
        runtime.DLA_core = opening.dla_core
    with complaints() as errors:
        engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        raise _refused(trt, model, errors, opening)
    if opening.weight_budget is not None:
        _limit_weights(engine, opening.weight_budget, model)
    return OpenEngine(trt, runtime, engine, description_of(trt, engine), _weights(trt, engine, len(plan)))


def register_plugins(trt: ModuleType, libraries: Sequence[Path], model: str) -> None:
    """Make TensorRT's own plugins, and those in these libraries, known to it; done once in the life of the process.

    Raises InvalidArgumentError when a library cannot be loaded.
    """
    _register_own(trt)
    for path in libraries:
        try:
            _register(trt, path)
        except OSError as error:
            raise InvalidArgumentError(
                f"the plugin library '{path}' of model '{model}' cannot be loaded: {error}"
            ) from error


@functools.cache
def _register_own(trt: ModuleType) -> None:
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(logger_of(trt), "")


@functools.cache
def _register(trt: ModuleType, path: Path) -> None:
    """Load a library. One of the kind that lists its creators is registered here; others register themselves.

    Raises OSError with what the loader, or the registry, says. Plugins that are there already are no error.
    """
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    if not (hasattr(library, "getCreators") or hasattr(library, "getPluginCreators")):
        return
    with complaints() as errors:
        handle = trt.get_plugin_registry().load_library(str(path))
    if handle is None and errors and "already" not in errors[0]:
        raise OSError("; ".join(errors))


def _new_runtime(trt: ModuleType) -> Any:
    """An `IRuntime`. Raises UnsupportedError, with what TensorRT says, when it cannot use the device at all."""
    with complaints() as errors:
        runtime = trt.Runtime(logger_of(trt))
    if errors:
        # The object holds a null pointer then, and ends the process when it is used, or deleted: it never must be.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(runtime))
        raise UnsupportedError(
            f"TensorRT {trt.__version__} cannot use the GPU: {'; '.join(errors)}; check with nvidia-smi that "
            "the driver "
            "is as new as this version of TensorRT needs"
        )
    return runtime


def _refused(trt: ModuleType, model: str, errors: Sequence[str], opening: Opening) -> InvalidArgumentError:
    reason = "; ".join(errors) or "TensorRT does not say why"
    step = f"build it again with version {trt.__version__} for this GPU"
    if "plugin" in reason.lower():
        step = "name the libraries of its plugins with --backend-config=tensorrt,plugins=PATH;PATH"
    elif "HostCodeAllowed" in reason and not opening.version_compatible:
        step = "it brings its own runtime: trust it with --backend-config=tensorrt,version-compatible=true"
    return InvalidArgumentError(f"unable to load the engine of model '{model}': {reason.rstrip('.')}; {step}")


def _limit_weights(engine: Any, budget: int, model: str) -> None:
    if not engine.streamable_weights_size:
        raise InvalidArgumentError(
            f"model '{model}' has the parameter weight_streaming_budget, and its engine cannot stream weights; build "
            "it with BuilderFlag.WEIGHT_STREAMING, or remove the parameter"
        )
    engine.weight_streaming_budget_v2 = min(budget, engine.streamable_weights_size)


def _weights(trt: ModuleType, engine: Any, size: int) -> int:
    """The bytes of weights on the device; those of the file where this version of TensorRT does not report them."""
    if not hasattr(trt, "EngineStat"):
        return size
    total = max(engine.get_engine_stat(trt.EngineStat.TOTAL_WEIGHTS_SIZE), 0)
    if engine.streamable_weights_size:
        total += engine.weight_streaming_budget_v2 - engine.streamable_weights_size
    return int(total)

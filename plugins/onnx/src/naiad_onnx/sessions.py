"""Opening sessions of ONNX Runtime over a model file, and reading a model's interface without one."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_kit.backends.interface import Interface
from naiad_onnx.interface import interface_of
from naiad_onnx.parameters import GlobalThreads, RunSettings
from naiad_onnx.providers import Provider
from naiad_onnx.runtime import CPU_PROVIDER, CUDA_PROVIDER, OPENVINO_PROVIDER, describe_error, runtime

DEFAULT_FILE = "model.onnx"
_FATAL = 4
_NOT_IMPLEMENTED = "onnx runtime error 9:"
_CHECK_DRIVER = "check that the driver and the libraries of the device are installed and fit this build of ONNX Runtime"
_CHECK_PARAMETERS = "check the parameters of the execution accelerator, and that its device is there"

# ONNX Runtime keeps one global thread pool a process, and once it is there every later session must use it.
_global_pool: list[GlobalThreads] = []
_global_pool_lock = threading.Lock()


def model_file(context: ModelContext) -> Path:
    """The model's file; a folder of that name holds it as `model.onnx`, beside its external weights.

    Raises NotFoundError, with what is there instead.
    """
    path = context.model_path(DEFAULT_FILE)
    if path.is_dir():
        path /= DEFAULT_FILE
    return context.existing_path(path)


def read_interface(path: Path, model: str, settings: RunSettings) -> Interface:
    """The inputs and outputs of the model in `path`, its shapes inferred, but nothing optimised and nothing placed.

    A model of 540 MB takes 0.9 s this way and 2.0 s as a session, and one whose operators only exist on a GPU can be
    read on any machine. Raises InvalidArgumentError when the file is no model.
    """
    options = _options(settings, model)
    try:
        read = _unplaced(str(path), options)
    except Exception as error:
        raise _refused(path, model, error, CPU_PROVIDER) from error
    if read is None:
        session = open_session(path, model, settings, [(CPU_PROVIDER, {})])
        return interface_of(session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())
    return interface_of(read.inputs_meta, read.outputs_meta, read.overridable_initializers)


def _unplaced(path: str, options: Any) -> Any:
    """A session that was not initialised, None where this ONNX Runtime has another interface: it is not public."""
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import InferenceSession

        return InferenceSession(options, path, True, False)
    except (ImportError, TypeError):
        return None


def open_session(path: Path, model: str, settings: RunSettings, providers: Sequence[Provider]) -> Any:
    """An `onnxruntime.InferenceSession` over the file, on the first of the providers.

    Raises InvalidArgumentError when the file cannot be loaded, UnsupportedError when the first provider does not start.
    """
    onnxruntime = runtime()
    first = providers[0][0]
    if any(name == CUDA_PROVIDER for name, _ in providers):
        onnxruntime.preload_dlls()
    options = _options(settings, model)
    try:
        session = onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=list(providers), enable_fallback=False
        )
    except Exception as error:
        raise _refused(path, model, error, first) from error
    if first not in session.get_providers():
        raise UnsupportedError(
            f"ONNX Runtime could not start {first} for model '{model}' (its log above says why); {_step(first)}"
        )
    return session


def _refused(path: Path, model: str, error: Exception, provider: str) -> InvalidArgumentError:
    """The error for a file that ONNX Runtime refuses: which file, what it says, and what to do."""
    reason = describe_error(error).replace(f"Load model from {path} failed:", "")
    if reason.startswith(_NOT_IMPLEMENTED):
        step = "export the model with other operators or types, or run it where this build of ONNX Runtime has them"
    elif provider != CPU_PROVIDER and provider.removesuffix("ExecutionProvider").lower() in reason.lower():
        step = _step(provider)
    else:
        step = "check the file with onnx.checker, or write it again"
    return InvalidArgumentError(f"ONNX Runtime cannot load '{path}' of model '{model}': {reason}; {step}")


def _step(provider: str) -> str:
    return _CHECK_PARAMETERS if provider == OPENVINO_PROVIDER else _CHECK_DRIVER


def _options(settings: RunSettings, model: str) -> Any:
    """The session options for these settings. ONNX Runtime logs nothing itself: its errors reach us as exceptions.

    Raises InvalidArgumentError for a library of operators that cannot be loaded.
    """
    onnxruntime = runtime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, settings.graph_level)
    mode = onnxruntime.ExecutionMode
    options.execution_mode = mode.ORT_PARALLEL if settings.parallel else mode.ORT_SEQUENTIAL
    options.enable_cpu_mem_arena = settings.memory_arena
    options.enable_mem_pattern = settings.memory_pattern
    for key, text in settings.entries.items():
        options.add_session_config_entry(key, text)
    for library in settings.libraries:
        try:
            options.register_custom_ops_library(library)
        except Exception as error:
            message = f"op_library_filename '{library}' of model '{model}' cannot be loaded: {describe_error(error)}"
            raise InvalidArgumentError(f"{message}; it must export RegisterCustomOps of ONNX Runtime") from error
    if _uses_global_pool(settings.global_threads):
        options.use_per_session_threads = False
    else:
        options.intra_op_num_threads = settings.intra_op_threads
        options.inter_op_num_threads = settings.inter_op_threads
    return options


def _uses_global_pool(wanted: GlobalThreads | None) -> bool:
    with _global_pool_lock:
        if wanted is not None and not _global_pool:
            runtime().set_global_thread_pool_sizes(wanted.intra, wanted.inter)
            _global_pool.append(wanted)
        return bool(_global_pool)

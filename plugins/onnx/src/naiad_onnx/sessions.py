"""ONNX Runtime sessions: opens a model file, and reads a model's interface without one."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_kit.backends.interface import Interface
from naiad_kit.backends.onnx_runtime import (
    CHECK_DRIVER,
    CPU_PROVIDER,
    Provider,
    describe_error,
    onnx_runtime,
    open_session,
    session_options,
    start_global_pool,
)
from naiad_onnx.interface import interface_of
from naiad_onnx.parameters import RunSettings
from naiad_onnx.providers import OPENVINO_PROVIDER

DEFAULT_FILE = "model.onnx"

TESTED_VERSIONS = ("1.24.1", "1.31.1")
"""The releases of ONNX Runtime whose private session is known: add one when the tests pass with it."""

runtime = functools.partial(onnx_runtime, "naiad-onnx")
"""The module `onnxruntime`. Raises PluginError, with what to install, when it is missing or broken."""

_NOT_IMPLEMENTED = "onnx runtime error 9:"
_CHECK_PARAMETERS = "check the parameters of the execution accelerator, and that its device is there"


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

    A model of 540 MB takes 1.0 s of CPU time this way and 2.5 s as a session, and one whose operators only exist on a
    GPU can be read on any machine. That is not public: with a release that is not tested, a public session reads the
    model. Raises InvalidArgumentError when the file is no model.
    """
    options = _options(settings, model)
    if runtime().__version__ not in TESTED_VERSIONS:
        session = open_model(path, model, settings, [(CPU_PROVIDER, {})])
        return interface_of(session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())
    from onnxruntime.capi.onnxruntime_pybind11_state import InferenceSession

    try:
        read = InferenceSession(options, str(path), True, False)
    except Exception as error:
        raise _refused(path, model, error, CPU_PROVIDER) from error
    return interface_of(read.inputs_meta, read.outputs_meta, read.overridable_initializers)


def open_model(path: Path, model: str, settings: RunSettings, providers: Sequence[Provider]) -> Any:
    """An `onnxruntime.InferenceSession` over the file, on the first of the providers.

    Raises InvalidArgumentError when the file cannot be loaded, UnsupportedError when the first provider does not start.
    """
    options = _options(settings, model)
    first = providers[0][0]
    try:
        return open_session(runtime(), str(path), options, providers, model, _step(first))
    except UnsupportedError:
        raise
    except Exception as error:
        raise _refused(path, model, error, first) from error


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
    return _CHECK_PARAMETERS if provider == OPENVINO_PROVIDER else CHECK_DRIVER


def _options(settings: RunSettings, model: str) -> Any:
    """The session options for these settings.

    Raises InvalidArgumentError for a library of operators that cannot be loaded.
    """
    if settings.global_threads is not None:
        start_global_pool(runtime(), settings.global_threads)
    options = session_options(runtime(), settings)
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
    return options

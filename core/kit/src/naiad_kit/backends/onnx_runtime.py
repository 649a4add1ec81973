"""ONNX Runtime for backends: import, session options and providers of a configuration, and error messages."""

import functools
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from naiad.errors import Problem, UnsupportedError
from naiad.options import boolean
from naiad_kit.backends.frameworks import import_framework
from naiad_kit.backends.parameters import ParameterReader, count

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"

Provider = tuple[str, Mapping[str, str]]
"""An execution provider's name and its options, as ONNX Runtime takes them."""

SESSION_PARAMETERS = ("intra_op_thread_count", "inter_op_thread_count", "execution_mode")
"""The parameters of a configuration that `read_session_settings` reads."""

CHECK_DRIVER = "check that the driver and the libraries of the device are installed and fit this build of ONNX Runtime"

_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""Wheels of ONNX Runtime 1.29 and later report sessions to Microsoft unless this variable is set at their import."""

_GRAPH_LEVELS = {0: "ORT_ENABLE_ALL", -1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
_FATAL = 4
_MESSAGE = re.compile(r"\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)", re.DOTALL)
_SOURCE_LOCATION = re.compile(r"Exception from \S+:\d+:")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a session runs: threads (0 is one a core) and the name of an `onnxruntime.GraphOptimizationLevel`."""

    intra_op_threads: int = 0
    inter_op_threads: int = 0
    parallel: bool = False
    graph_level: str = "ORT_ENABLE_ALL"


@dataclass(frozen=True, slots=True)
class GlobalThreads:
    """Sizes of the one thread pool that all sessions of the process share; 0 is one thread a core."""

    intra: int = 0
    inter: int = 0


# ONNX Runtime keeps one global thread pool a process, and once it is there every later session must use it.
_global_pool: list[GlobalThreads] = []
_global_pool_lock = threading.Lock()


@functools.cache
def onnx_runtime(plugin: str) -> ModuleType:
    """The module `onnxruntime`, for a plugin with the extras `cpu` and `gpu`; its telemetry is off.

    A value of `ORT_DISABLE_TELEMETRY` in the environment stays; 0 turns the telemetry on. Raises PluginError, with what
    to install, when the module is missing or broken.
    """
    os.environ.setdefault(_NO_TELEMETRY, "1")
    step = f"run pip install '{plugin}[cpu]', or '{plugin}[gpu]' on a machine with an NVIDIA GPU"
    return import_framework("onnxruntime", "ONNX Runtime", plugin, step)


def describe_error(error: BaseException) -> str:
    """What ONNX Runtime reports, as `onnx runtime error <code>: <message>` where it has a code.

    A message of OpenVINO comes without the locations in the sources of both.
    """
    text = str(error).strip()
    match = _MESSAGE.search(text)
    if match is None:
        return f"{type(error).__name__}: {text}"
    _, of_openvino, message = match[2].rpartition("[OpenVINO-EP]")
    return f"onnx runtime error {match[1]}: " + (
        " ".join(_SOURCE_LOCATION.sub("", message).split()) if of_openvino else message.strip()
    )


def read_session_settings(reader: ParameterReader) -> SessionSettings:
    """The settings in a configuration; what is wrong with them is added to the reader's problems."""
    policy = reader.config.optimization
    level = policy.graph.level if policy is not None and policy.graph is not None else 0
    if level not in _GRAPH_LEVELS:
        message = f"there is no graph optimisation level {level}"
        hint = "use 0 (all), 1 (extended), -1 (basic) or 2 (none)"
        reader.problems.append(Problem(message, "optimization.graph.level", hint=hint))
    return SessionSettings(
        intra_op_threads=reader.read("intra_op_thread_count", count, 0),
        inter_op_threads=reader.read("inter_op_thread_count", count, 0),
        parallel=reader.read("execution_mode", boolean, False),
        graph_level=_GRAPH_LEVELS.get(level, ""),
    )


def start_global_pool(onnxruntime: ModuleType, threads: GlobalThreads) -> None:
    """Let all later `session_options` of the process share one thread pool; one that is there already stays."""
    with _global_pool_lock:
        if not _global_pool:
            onnxruntime.set_global_thread_pool_sizes(threads.intra, threads.inter)
            _global_pool.append(threads)


def session_options(onnxruntime: ModuleType, settings: SessionSettings) -> Any:
    """The session options for these settings; the threads are those of the global pool once that was started.

    ONNX Runtime logs nothing itself: its errors reach us as exceptions.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, settings.graph_level)
    mode = onnxruntime.ExecutionMode
    options.execution_mode = mode.ORT_PARALLEL if settings.parallel else mode.ORT_SEQUENTIAL
    options.intra_op_num_threads = settings.intra_op_threads
    options.inter_op_num_threads = settings.inter_op_threads
    with _global_pool_lock:
        if _global_pool:
            options.use_per_session_threads = False
    return options


def runs_on_gpu(kind: str, available: Sequence[str]) -> bool:
    """Whether an instance of that kind (`CPU`, `GPU`, `MODEL`) is on a GPU, given the providers of this build."""
    return kind == "GPU" or (kind == "MODEL" and CUDA_PROVIDER in available)


def missing_provider(model: str, feature: str, provider: str, available: Sequence[str], step: str) -> UnsupportedError:
    """The error for a model that uses a feature (`a GPU`) whose provider this build lacks; `step` is what to do."""
    return UnsupportedError(
        f"model '{model}' asks for {feature}, and this build of ONNX Runtime has no {provider} "
        f"(it has {', '.join(available)}); {step}"
    )


def open_session(
    onnxruntime: ModuleType,
    source: str | bytes,
    options: Any,
    providers: Sequence[Provider],
    model: str,
    step: str = CHECK_DRIVER,
) -> Any:
    """An `onnxruntime.InferenceSession` over a file or the bytes of one, on the first of the providers.

    Raises what ONNX Runtime raises when it refuses the source, and UnsupportedError, with `step` as what to do, when
    the first provider does not start.
    """
    if any(name == CUDA_PROVIDER for name, _ in providers):
        onnxruntime.preload_dlls()
    session = onnxruntime.InferenceSession(
        source, sess_options=options, providers=list(providers), enable_fallback=False
    )
    first = providers[0][0]
    if first not in session.get_providers():
        raise UnsupportedError(
            f"ONNX Runtime could not start {first} for model '{model}' (its log above says why); {step}"
        )
    return session

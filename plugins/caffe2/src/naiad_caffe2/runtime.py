"""ONNX Runtime itself, and the module that writes its graphs: imported when a model needs them; errors in our words."""

import functools
import re
from types import ModuleType

from naiad.frameworks import import_framework

_STEP = "run pip install 'naiad-caffe2[cpu]', or 'naiad-caffe2[gpu]' on a machine with an NVIDIA GPU"

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
_MESSAGE = re.compile(r"\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)", re.DOTALL)


@functools.cache
def runtime() -> ModuleType:
    """The module `onnxruntime`. Raises PluginError, with what to install, when it or `onnx` is missing or broken."""
    import_framework("onnx", "the package onnx", "naiad-caffe2", _STEP)
    return import_framework("onnxruntime", "ONNX Runtime", "naiad-caffe2", _STEP)


def describe_error(error: BaseException) -> str:
    """What ONNX Runtime says went wrong, as `onnx runtime error <code>: <message>` where it gives a code."""
    text = str(error).strip()
    found = _MESSAGE.search(text)
    return f"onnx runtime error {found[1]}: {found[2].strip()}" if found else f"{type(error).__name__}: {text}"

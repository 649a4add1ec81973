"""ONNX Runtime itself: imported when a model needs it, asked what it can do, and its errors in our words."""

import functools
import re
from types import ModuleType

from naiad.frameworks import import_framework

_STEP = "run pip install 'naiad-onnx[cpu]', or 'naiad-onnx[gpu]' on a machine with an NVIDIA GPU"

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
OPENVINO_PROVIDER = "OpenVINOExecutionProvider"
_MESSAGE = re.compile(r"\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)", re.DOTALL)
_PLACE = re.compile(r"Exception from \S+:\d+:")


@functools.cache
def runtime() -> ModuleType:
    """The module `onnxruntime`. Raises PluginError, with what to install, when it is missing or broken."""
    return import_framework("onnxruntime", "ONNX Runtime", "naiad-onnx", _STEP)


def describe_error(error: BaseException) -> str:
    """What ONNX Runtime says went wrong, as `onnx runtime error <code>: <message>` where it gives a code."""
    text = str(error).strip()
    found = _MESSAGE.search(text)
    return f"onnx runtime error {found[1]}: {_plain(found[2])}" if found else f"{type(error).__name__}: {text}"


def _plain(message: str) -> str:
    """The message; what OpenVINO says in it comes without the places in the sources of both."""
    own = message.rpartition("[OpenVINO-EP]")[2]
    return message.strip() if own == message else " ".join(_PLACE.sub("", own).split())

"""ONNX Runtime itself: imported when a model needs it, asked what it can do, and its errors in our words."""

import functools
import re
from types import ModuleType

from naiad.errors import PluginError

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
_MESSAGE = re.compile(r"\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)", re.DOTALL)


@functools.cache
def runtime() -> ModuleType:
    """The module `onnxruntime`. Raises PluginError, with what to install, when it is missing."""
    try:
        import onnxruntime
    except ImportError as error:
        raise PluginError(
            f"naiad-onnx needs ONNX Runtime, which cannot be imported ({error}); "
            "run pip install 'naiad-onnx[cpu]', or 'naiad-onnx[gpu]' on a machine with an NVIDIA GPU"
        ) from error
    return onnxruntime  # type: ignore[no-any-return]


def told(error: BaseException) -> str:
    """What ONNX Runtime says went wrong, as `onnx runtime error <code>: <message>` where it gives a code."""
    text = str(error).strip()
    found = _MESSAGE.search(text)
    return f"onnx runtime error {found[1]}: {found[2].strip()}" if found else f"{type(error).__name__}: {text}"

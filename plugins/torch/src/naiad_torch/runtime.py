"""The PyTorch library: imported when the first model is loaded; errors are described for callers."""

import functools
from types import ModuleType

from naiad_kit.backends.frameworks import import_framework

_STEP = "run pip install 'naiad-torch[cpu]', or install the build of torch that fits the machine's GPUs"
_MARKS = (
    "\nException raised from ",
    "\nfrom user code:",
    "\nSet TORCHDYNAMO_VERBOSE",
    "\n  Developer debug context:",
)
"""The texts after which an error of PyTorch names source lines, its own or the model's."""


@functools.cache
def runtime() -> ModuleType:
    """The module `torch`. Raises PluginError, with what to install, when it is missing or broken."""
    return import_framework("torch", "PyTorch", "naiad-torch", _STEP)


def describe_error(error: BaseException) -> str:
    """What PyTorch says went wrong: TorchScript's own lines without the interpreter's, or the error as it is."""
    text = str(error).strip()
    if "Traceback of TorchScript" in text:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        last = next((line for line in reversed(lines) if "Error: " in line), lines[-1])
        return last.removeprefix("RuntimeError: ")
    for mark in _MARKS:
        text = text.partition(mark)[0]
    return text.strip() or type(error).__name__

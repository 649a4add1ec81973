"""The TensorFlow library: imported when the first model is loaded; errors are described for callers."""

import functools
import logging
import os
from types import ModuleType

from naiad_kit.backends.frameworks import import_framework

_STEP = "run pip install 'naiad-tensorflow[cpu]', or 'naiad-tensorflow[gpu]' on a machine with an NVIDIA GPU"


@functools.cache
def runtime() -> ModuleType:
    """The module `tensorflow`. Raises PluginError, with what to install, when it is missing or broken."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # its greetings go past every log
    module = import_framework("tensorflow", "TensorFlow", "naiad-tensorflow", _STEP)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # it deprecates sessions, which serve best
    return module


def describe_error(error: BaseException) -> str:
    """What TensorFlow says went wrong, without its stack of nodes."""
    text = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__

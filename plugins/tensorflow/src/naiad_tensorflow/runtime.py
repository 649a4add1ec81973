"""TensorFlow itself: imported when a model needs it, and its errors in our words."""

import functools
import logging
import os
from types import ModuleType

from naiad.errors import PluginError


@functools.cache
def runtime() -> ModuleType:
    """The module `tensorflow`. Raises PluginError, with what to install, when it is missing."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # its greetings go past every log
    try:
        import tensorflow
    except (ImportError, OSError) as error:
        raise PluginError(
            f"naiad-tensorflow needs TensorFlow, which cannot be imported ({error}); run pip install "
            "'naiad-tensorflow[cpu]', or 'naiad-tensorflow[gpu]' on a machine with an NVIDIA GPU"
        ) from error
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # it deprecates sessions, which serve best
    return tensorflow  # type: ignore[no-any-return]


def told(error: BaseException) -> str:
    """What TensorFlow says went wrong, without its stack of nodes."""
    text = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__

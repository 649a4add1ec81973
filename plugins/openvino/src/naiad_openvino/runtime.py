"""The OpenVINO library: imported when the first model is loaded; errors are described for callers."""

import functools
from types import ModuleType

from naiad_kit.backends.frameworks import import_framework

_STEP = "run pip install 'naiad-openvino[cpu]'"


@functools.cache
def runtime() -> ModuleType:
    """The module `openvino`. Raises PluginError, with what to install, when it is missing or broken."""
    return import_framework("openvino", "OpenVINO", "naiad-openvino", _STEP)


def describe_error(error: BaseException) -> str:
    """What OpenVINO says went wrong, without the places in its own sources."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("Exception from ", "Check '"))]
    return " ".join(kept or lines) or type(error).__name__

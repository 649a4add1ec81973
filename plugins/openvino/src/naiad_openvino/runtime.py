"""The OpenVINO library: imported when the first model is loaded; errors are described for callers."""

import functools
import sys
import threading
from types import ModuleType

from naiad_kit.backends.frameworks import import_framework

_STEP = "run pip install 'naiad-openvino[cpu]'"
_TELEMETRY = "openvino_telemetry"
"""The package that reports each import of OpenVINO to Google Analytics; OpenVINO has a stub for where it is missing."""

_import_lock = threading.Lock()
"""`functools.cache` lets several threads miss at once, and the entry of `sys.modules` is there once."""


@functools.cache
def runtime() -> ModuleType:
    """The module `openvino`, without its telemetry unless `openvino_telemetry` was imported before.

    Raises PluginError, with what to install, when the module is missing or broken.
    """
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    with _import_lock:
        modules.setdefault(_TELEMETRY, None)  # an import of it is an ImportError
        try:
            return import_framework("openvino", "OpenVINO", "naiad-openvino", _STEP)
        finally:
            if modules[_TELEMETRY] is None:
                del modules[_TELEMETRY]


def describe_error(error: BaseException) -> str:
    """What OpenVINO says went wrong, without the places in its own sources."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("Exception from ", "Check '"))]
    return " ".join(kept or lines) or type(error).__name__

"""The TensorRT libraries: the one that reads an engine is imported when needed; its log messages become errors."""

import functools
import importlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from naiad.errors import InvalidArgumentError, PluginError

RTX_MAGIC, MAGIC = b"vtrt", b"ftrt"
"""What engines of TensorRT for RTX (1.x), and those of TensorRT (from 8.6), begin with."""

_logger = logging.getLogger("naiad.tensorrt")


@dataclass(frozen=True, slots=True)
class Library:
    """One of the libraries that execute engines: its name in words, modules by preference, and its extra of pip."""

    name: str
    modules: tuple[str, ...]
    extra: str


TENSORRT = Library("TensorRT", ("tensorrt", "tensorrt_bindings"), "tensorrt")
LEAN = Library("TensorRT's lean runtime", ("tensorrt_lean", "tensorrt_lean_bindings"), "lean")
DISPATCH = Library("TensorRT's dispatch runtime", ("tensorrt_dispatch", "tensorrt_dispatch_bindings"), "dispatch")
RTX = Library("TensorRT for RTX", ("tensorrt_rtx", "tensorrt_rtx_bindings"), "rtx")
_LIBRARIES = (TENSORRT, LEAN, DISPATCH, RTX)

DISTRIBUTIONS = tuple(
    f"{library.modules[0]}{cuda}{part}"
    for library in _LIBRARIES
    for cuda, part in (("", ""), *((cuda, part) for cuda in ("_cu13", "_cu12") for part in ("", "_bindings")))
)
"""What may be installed to execute engines: each library as a whole, or for one version of CUDA, or only its module."""


def runtime_for(plan: bytes, model: str, find: "Callable[[Library], ModuleType | None] | None" = None) -> ModuleType:
    """The installed module that reads an engine which begins with these bytes.

    Engines of TensorRT for RTX are read by that alone, all others by TensorRT, else by its lean runtime, else by its
    dispatch runtime. Raises PluginError, with what to install, when there is none, and InvalidArgumentError for what is
    no engine.
    """
    if plan[:4] not in (RTX_MAGIC, MAGIC):
        raise InvalidArgumentError(
            f"the engine of model '{model}' begins with {plan[:4]!r}, which no engine does ({MAGIC!r} or "
            f"{RTX_MAGIC!r}); write what build_serialized_network of TensorRT returns, and nothing before it"
        )
    find = find or _module
    suitable = (RTX,) if plan[:4] == RTX_MAGIC else (TENSORRT, LEAN, DISPATCH)
    library = next(filter(None, map(find, suitable)), None)
    if library is not None:
        return library
    others = [library.name for library in _LIBRARIES if library not in suitable and find(library) is not None]
    here = f"; installed is {' and '.join(others)}, which cannot read it" if others else ""
    raise PluginError(
        f"model '{model}' is an engine of {suitable[0].name}, which cannot be imported{here}; "
        f"run pip install 'naiad-tensorrt[{suitable[0].extra}]'"
    )


@contextmanager
def complaints() -> Iterator[list[str]]:
    """The errors that TensorRT logs in this thread meanwhile, as they come: it returns None in place of raising."""
    outer, errors = getattr(_heard, "errors", None), list[str]()
    _heard.errors = errors
    try:
        yield errors
    finally:
        _heard.errors = outer


def logger_of(trt: ModuleType) -> Any:
    """The `ILogger` of a module, one for the life of the process, for its objects keep no reference to it.

    It writes to the log `naiad.tensorrt`, and to `complaints`.
    """
    with _logger_lock:  # the cache alone would let two threads make one each, and free one of these
        return _logger_of(trt)


@functools.cache
def _logger_of(trt: ModuleType) -> Any:
    severity = trt.ILogger.Severity
    levels = {
        severity.INTERNAL_ERROR: logging.ERROR,
        severity.ERROR: logging.ERROR,
        severity.WARNING: logging.WARNING,
        severity.INFO: logging.INFO,
        severity.VERBOSE: logging.DEBUG,
    }

    class Log(trt.ILogger):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            level, errors = levels[severity], getattr(_heard, "errors", None)
            if level == logging.ERROR and errors is not None:
                errors.append(_brief(message))  # the caller puts it into its own error
                level = logging.DEBUG
            _logger.log(logging.DEBUG if level == logging.INFO else level, "%s", message)

    return Log()


_heard = threading.local()
_logger_lock = threading.Lock()


@functools.cache
def _module(library: Library) -> ModuleType | None:
    for name in library.modules:
        try:
            return importlib.import_module(name)
        except (ImportError, OSError) as error:
            if not isinstance(error, ModuleNotFoundError) or error.name != name:
                _logger.warning("%s is installed and cannot be imported: %s", library.name, error)
    return None


def _brief(message: str) -> str:
    """A message without the place in TensorRT's own sources."""
    return message.partition(" (In ")[0].partition("] ")[2] or message.partition(" (In ")[0]

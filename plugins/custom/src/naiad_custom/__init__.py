"""Hook implementations of this plugin, and the names that a model.py imports.

Both are light: `naiad_custom.api` imports nothing but the standard library, so asking for the hooks stays cheap and
`from naiad_custom import model` stays short.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl
from naiad_custom.api import (
    BF16,
    BOOL,
    BYTES,
    FP16,
    FP32,
    FP64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Array,
    model,
)
from naiad_custom.servers import AsyncServer, Server

if TYPE_CHECKING:
    from naiad.backend import Backend
    from naiad.extend import Service
    from naiad.options import Option, Settings

__all__ = [
    "BF16",
    "BOOL",
    "BYTES",
    "FP16",
    "FP32",
    "FP64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "Array",
    "AsyncServer",
    "Server",
    "model",
]


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """Where backends are that are written in Python."""
    from naiad.options import Option

    text = "the folder of backends that are written in Python, each NAME/model.py"
    return [Option("backend-directory", "/opt/tritonserver/backends", text, metavar="DIR")]


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """The backends of the backend directory."""
    from naiad_custom.backend_directory import BackendDirectory

    return [BackendDirectory(settings.value("backend-directory", str))]


@hookimpl
def naiad_backends() -> "Sequence[Backend]":
    """The backend `python`: functions, classes and Triton-style model.py; and `custom`: shared libraries."""
    from naiad_custom.backend import PythonBackend
    from naiad_custom.shared_library.backend import CustomBackend

    return [PythonBackend(), CustomBackend()]

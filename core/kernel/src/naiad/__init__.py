"""Naiad: an inference server that is assembled from parts."""

import importlib
from typing import TYPE_CHECKING, Any

from naiad._version import __version__
from naiad.hookspecs import hookimpl

if TYPE_CHECKING:
    from naiad._plugins.registry import PluginRegistry
    from naiad._server.inspection import ModelInspector
    from naiad._server.server import Server
    from naiad.types import Request, Response
    from naiad_config import ModelConfig
    from naiad_tensors.tensors import Tensor

__all__ = [
    "ModelConfig",
    "ModelInspector",
    "PluginRegistry",
    "Request",
    "Response",
    "Server",
    "Tensor",
    "__version__",
    "hookimpl",
]

_HOMES = {
    "ModelConfig": "naiad_config",
    "ModelInspector": "naiad._server.inspection",
    "PluginRegistry": "naiad._plugins.registry",
    "Request": "naiad.types",
    "Response": "naiad.types",
    "Server": "naiad._server.server",
    "Tensor": "naiad_tensors.tensors",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: a plugin's hook module must not pay for numpy."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'naiad' has no attribute '{name}'")
    return getattr(importlib.import_module(home), name)

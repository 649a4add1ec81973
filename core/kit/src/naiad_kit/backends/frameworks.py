"""Import of a framework when it is needed, with an error that says what to install; its version without an import."""

import importlib
import importlib.util
from collections.abc import Sequence
from importlib import metadata
from types import ModuleType

from naiad.errors import PluginError

__all__ = ["import_framework", "installed_framework"]

_BUILDS = ("", "-gpu", "-cpu", "-openvino", "-directml", "-rocm")
"""How the distributions of one framework's builds end, which hold the same module."""

_CLASH = ", which share a module: uninstall all of them, and install one"


def installed_framework(distributions: str | Sequence[str]) -> str:
    """The first of these that is installed, with its version (`onnxruntime 1.20.0`), read from its metadata.

    A build for other devices that has a name of its own (`onnxruntime-gpu`) is found under it; of several builds, which
    write over each other's files, all are named. One whose metadata is missing, as in a build from source, is named
    without its version. "" when none is installed.
    """
    names = [distributions] if isinstance(distributions, str) else distributions
    for name in filter(None, names):
        installed = [version for version in map(_version, (f"{name}{build}" for build in _BUILDS)) if version]
        if installed:
            return " and ".join(installed) + (_CLASH if len(installed) > 1 else "")
    modules = (name.replace("-", "_") for name in names if name)
    return next((name for name in modules if importlib.util.find_spec(name)), "")


def _version(distribution: str) -> str:
    try:
        return f"{distribution} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return ""


def import_framework(module: str, named: str, plugin: str, step: str) -> ModuleType:
    """Import a framework where a model is loaded; `named` is its name for people, `plugin` the distribution needing it.

    Raises PluginError, with `step` as what to do (`run pip install 'naiad-torch[cpu]'`), when it is missing, and when
    the one that is installed does not work, whatever it raises.
    """
    try:
        return importlib.import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            raise PluginError(f"{plugin} needs {named}, which is not installed; {step}") from error
        installed = installed_framework(module) or module
        raise PluginError(
            f"{plugin} needs {named}, and what is installed, {installed}, cannot be imported ({_first_line(error)}); "
            f"fix that, or uninstall it and {step}"
        ) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__

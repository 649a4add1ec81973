"""Model files of PyTorch: which file holds the model, and in which form."""

from pathlib import Path

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad_torch.module import ModuleArtefact
from naiad_torch.package import open_package
from naiad_torch.parameters import RunSettings
from naiad_torch.plan import input_names
from naiad_torch.program import Artefact
from naiad_torch.script import ScriptArtefact

PYTHON = "model.py"
_SCRIPT, _PACKAGE = "model.pt", "model.pt2"


def model_file(context: ModelContext) -> Path:
    """The model's file. Raises NotFoundError, with what is there instead."""
    runtime = context.config.runtime
    if runtime and runtime != PYTHON:
        raise InvalidArgumentError(
            f"model '{context.config.name}' asks for the runtime '{runtime}'; of PyTorch there is only '{PYTHON}'"
        )
    paths = _in_python(context) if runtime else [context.model_path(default) for default in _defaults(context)]
    return context.existing_path(*paths)


def read_artefact(path: Path, context: ModelContext, settings: RunSettings) -> Artefact:
    """The model in that file, of whichever form. Raises NaiadError."""
    config = context.config
    if path.suffix == ".py":
        return ModuleArtefact(path, config.name, settings.compile)
    if path.suffix == ".pt2":
        return open_package(path, config.name, settings.releases_lock)
    return ScriptArtefact(path, config.name, input_names(config), settings.optimized_execution)


def _in_python(context: ModelContext) -> list[Path]:
    """The possible files of a Python module. `model.pt`, the default model file, has its weights."""
    named = context.model_path(PYTHON)
    paths = [context.version_directory / name for name in (PYTHON, _SCRIPT)]
    return paths if named.name == _SCRIPT else [named, *paths]


def _defaults(context: ModelContext) -> tuple[str, ...]:
    if context.config.platform == "torch_aoti":
        return (_PACKAGE,)
    if context.config.platform == "pytorch_libtorch":
        return (_SCRIPT,)
    return (_SCRIPT, _PACKAGE)

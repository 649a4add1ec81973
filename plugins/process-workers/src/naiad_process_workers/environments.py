"""The environment of a model's processes: the server's own, one that the model names, its backend's, or a built one."""

import logging
import os
import tarfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from naiad.backend import BackendTraits, ModelContext
from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig
from naiad_process_workers.activation import activated
from naiad_process_workers.archives import unpack
from naiad_process_workers.environment_cache import cached_environment, environments_folder
from naiad_process_workers.process import Environment
from naiad_process_workers.programs import run
from naiad_process_workers.requirements import built_environment, has_requirements, requirements_of

PYTHON, ARCHIVE = "python", "EXECUTION_ENV_PATH"
"""The model parameters that name an environment: a folder or an interpreter, and a folder or an archive."""

_MODEL_FOLDER = "$$TRITON_MODEL_DIRECTORY"
_PACKAGES = (
    "c_python_backend_utils",
    "naiad",
    "naiad_config",
    "naiad_custom",
    "naiad_kit",
    "naiad_process_workers",
    "naiad_statistics",
    "naiad_tensors",
    "pluggy",
    "triton_python_backend_utils",
)
"""What a process takes from the server in an environment of its own; numpy is the environment's."""

_PACKAGES_FOR_BUILT = (*_PACKAGES, "greenlet", "numpy")
"""The same in an environment that was built for the server's interpreter, where the environment lacks them."""

_logger = logging.getLogger("naiad.model")
_OF_THE_SERVER = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def has_environment(context: ModelContext, traits: BackendTraits, builds: bool) -> bool:
    """Whether a model in Python has an environment of its own: one that it names, its backend's, or a built one.

    `builds` says whether environments are built from a requirements.txt.
    """
    if traits.name != "python" and traits.code_directory is None:
        return False
    if any(text_of(context.config, name) for name in (PYTHON, ARCHIVE)) or _of_backend(traits) is not None:
        return True
    return builds and has_requirements(context, traits)


def environment_of(context: ModelContext, traits: BackendTraits, builds: bool) -> Environment:
    """The environment that the model names, else that of its backend, else one with what its requirements.txt lists.

    An archive is unpacked, and requirements are installed if the server `builds` environments. Raises
    InvalidArgumentError.
    """
    config = context.config
    name = PYTHON if text_of(config, PYTHON) else ARCHIVE
    text = text_of(config, name)
    if text:
        path = context.model_directory / text.replace(_MODEL_FOLDER, str(context.model_directory))
        return _environment_at(path, f"parameter '{name}' of model '{config.name}' is '{text}'", name == ARCHIVE)
    archive = _of_backend(traits)
    if archive is not None:
        return _environment_at(archive, f"the environment of backend '{traits.name}' is '{archive}'", True)
    requirements = requirements_of(context, traits) if builds else None
    if requirements is None:
        return Environment.own()
    folder = built_environment(requirements, config.name, _variables(None))
    return Environment(str(folder / "bin" / "python"), None, _packages(_PACKAGES_FOR_BUILT), _variables(folder))


def _of_backend(traits: BackendTraits) -> Path | None:
    """The archive or folder of an environment in the folder of a Python-based backend, under Triton's name for it."""
    if traits.code_directory is None:
        return None
    stem = f"pb_exec_env_{traits.name}"
    candidates = (traits.code_directory / name for name in (f"{stem}.tar.gz", stem))
    return next((path for path in candidates if path.exists()), None)


def _environment_at(path: Path, subject: str, may_be_archive: bool) -> Environment:
    """The environment at that path; `subject` begins the sentences of errors."""
    if not path.exists():
        raise InvalidArgumentError(f"{subject}, and there is no '{path}'")
    if may_be_archive and path.is_file():
        path = _unpacked(path, subject)
    python = path if path.is_file() else path / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise InvalidArgumentError(f"{subject}, and there is no interpreter '{python}'")
    return Environment(str(python), None, _packages(_PACKAGES), _variables(python.parent.parent))


def _packages(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The folders of the server's own packages; nothing that lies beside them is seen in the process."""
    folders = []
    for name in names:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append((name, str(Path(spec.origin).parent)))
    return tuple(folders)


def _variables(root: Path | None) -> tuple[tuple[str, str], ...]:
    """The server's environment variables, with the programs and libraries of that environment first if it is there."""
    variables = {name: value for name, value in os.environ.items() if name not in _OF_THE_SERVER}
    if root is None:
        return tuple(variables.items())
    variables["PATH"] = os.pathsep.join(filter(None, (str(root / "bin"), variables.get("PATH", ""))))
    if (root / "conda-meta").is_dir():
        libraries = (str(root / "lib"), variables.get("LD_LIBRARY_PATH", ""))
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, libraries))
        variables = activated(root, variables)
    return tuple(variables.items())


def _unpacked(archive: Path, subject: str) -> Path:
    """The folder of an archive's content, unpacked once for each state of the archive."""
    state = archive.stat()
    key = f"{archive.resolve()} {state.st_size} {state.st_mtime_ns}"
    try:
        return cached_environment(key, partial(_unpack, archive))
    except (OSError, tarfile.TarError) as error:
        raise InvalidArgumentError(
            f"{subject}, which cannot be unpacked into '{environments_folder()}': {error}"
        ) from error


def _unpack(archive: Path, folder: Path, lock: int) -> None:
    """Unpack, and let an environment of conda-pack mend the paths in its files."""
    unpack(archive, folder)
    script, python = folder / "bin" / "conda-unpack", folder / "bin" / "python"
    if not script.is_file():
        return
    code, last = run([str(python), str(script)], dict(_variables(None)), lock)
    if code:
        _logger.warning("conda-unpack of '%s' ended with exit code %d: %s", archive, code, last)


def text_of(config: ModelConfig, name: str) -> str:
    """The text of that parameter of a model, "" without it."""
    parameter = config.parameters.get(name)
    return "" if parameter is None else parameter.string_value.strip()

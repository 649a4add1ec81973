"""The environment of a model's processes: the server's own, a virtual or conda environment, or an archive of one."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig
from naiad_process_workers.process import Environment

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

_OF_THE_SERVER = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def names_environment(config: ModelConfig) -> bool:
    """Whether a configuration names an environment."""
    return any(_text(config, name) for name in (PYTHON, ARCHIVE))


def environment_of(context: ModelContext) -> Environment:
    """The environment that the model names, unpacked if it is an archive. Raises InvalidArgumentError."""
    config = context.config
    name = PYTHON if _text(config, PYTHON) else ARCHIVE
    text = _text(config, name)
    if not text:
        return Environment.own()
    path = context.model_directory / text.replace(_MODEL_FOLDER, str(context.model_directory))
    subject = f"parameter '{name}' of model '{config.name}'"
    if not path.exists():
        raise InvalidArgumentError(f"{subject} is '{text}', and there is no '{path}'")
    if name == ARCHIVE and path.is_file():
        path = _unpacked(path, subject)
    python = path if path.is_file() else path / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise InvalidArgumentError(f"{subject} is '{text}', and there is no interpreter '{python}'")
    return Environment(str(python), None, _packages(), _variables(python.parent.parent))


def _packages() -> tuple[tuple[str, str], ...]:
    """The folders of the server's own packages; nothing that lies beside them is seen in the process."""
    folders = []
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append((name, str(Path(spec.origin).parent)))
    return tuple(folders)


def _variables(root: Path) -> tuple[tuple[str, str], ...]:
    """The server's environment variables with the programs and libraries of that environment first."""
    variables = {name: value for name, value in os.environ.items() if name not in _OF_THE_SERVER}
    variables["PATH"] = os.pathsep.join(filter(None, (str(root / "bin"), variables.get("PATH", ""))))
    if (root / "conda-meta").is_dir():
        libraries = (str(root / "lib"), variables.get("LD_LIBRARY_PATH", ""))
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, libraries))
    return tuple(variables.items())


def _unpacked(archive: Path, subject: str) -> Path:
    """The folder of an archive's content, unpacked once for each state of the archive."""
    state = archive.stat()
    key = f"{archive.resolve()} {state.st_size} {state.st_mtime_ns}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "naiad" / "environments"
    folder = cache / hashlib.sha256(key.encode()).hexdigest()[:32]
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=cache, prefix="unfinished-"))
    try:
        with tarfile.open(archive) as content:
            content.extractall(unfinished, filter="data")
        unfinished.replace(folder)  # an environment that another process has unpacked meanwhile is as good
        _relocate(folder)
    except (OSError, tarfile.TarError) as error:
        if not folder.is_dir():
            raise InvalidArgumentError(f"{subject} is '{archive}', which cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _relocate(folder: Path) -> None:
    """Let an environment of conda-pack mend the paths in its files."""
    script, python = folder / "bin" / "conda-unpack", folder / "bin" / "python"
    if script.is_file():
        subprocess.run([str(python), str(script)], check=False, stdout=subprocess.DEVNULL)  # noqa: S603


def _text(config: ModelConfig, name: str) -> str:
    parameter = config.parameters.get(name)
    return "" if parameter is None else parameter.string_value.strip()

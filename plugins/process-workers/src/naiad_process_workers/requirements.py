"""Environments that are built from the requirements.txt beside a model.py, with uv or pip."""

import logging
import os
import platform
import re
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from time import monotonic

from naiad.backend import BackendTraits, ModelContext
from naiad.errors import InvalidArgumentError
from naiad_process_workers.environment_cache import cached_environment
from naiad_process_workers.programs import describe_failure, run

REQUIREMENTS = "requirements.txt"
_INCLUDED = re.compile(r"^\s*(?:-r|-c|--requirement|--constraint)(?:\s+|=|(?=\S))(\S+)", re.MULTILINE)
_logger = logging.getLogger("naiad.model")


def has_requirements(context: ModelContext, traits: BackendTraits) -> bool:
    """Whether there is a requirements.txt beside the code of the model's backend, or of one of its versions."""
    if traits.code_directory is not None:
        return (traits.code_directory / REQUIREMENTS).is_file()
    return any(path.is_file() for path in context.model_directory.glob(f"*/{REQUIREMENTS}"))


def requirements_of(context: ModelContext, traits: BackendTraits) -> Path | None:
    """The requirements.txt beside the model.py of that version, or beside that of its backend; None without one."""
    file = (traits.code_directory or context.version_directory) / REQUIREMENTS
    return file if file.is_file() else None


def built_environment(file: Path, model: str, variables: Sequence[tuple[str, str]]) -> Path:
    """The folder of an environment with these requirements, which is built unless there is one for the same contents.

    `variables` are the environment variables of the programs that build it. Blocks for as long as they take. Raises
    InvalidArgumentError with the last lines that they print.
    """
    python = f"{sys.version} {platform.machine()} {os.path.realpath(sys.executable)}"
    try:
        contents = "\n".join(_contents(file))
        build = partial(_build, file=file, model=model, variables=dict(variables))
        return cached_environment(f"{python}\n{contents}", build)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"no environment can be built from '{file}' of model '{model}': {error}") from error


def _contents(file: Path, seen: tuple[Path, ...] = ()) -> list[str]:
    """The text of the file, and of those that it includes with -r or -c."""
    text = file.read_text(encoding="utf-8")
    texts = [text]
    for name in _INCLUDED.findall(text):
        included = file.parent / name
        if included.is_file() and included not in seen:
            texts += _contents(included, (*seen, file))
    return texts


def _build(folder: Path, lock: int, file: Path, model: str, variables: dict[str, str]) -> None:
    installer, commands = _commands(folder, file)
    _logger.info("building an environment from '%s' of model '%s' with %s", file, model, installer)
    began = monotonic()
    for command in commands:
        code, last = run(command, variables, lock, file.parent)
        if code:
            raise InvalidArgumentError(
                f"no environment can be built from '{file}' of model '{model}': {installer} "
                + describe_failure(code, last)
            )
    _logger.info("the environment of model '%s' was built in %.1f s: '%s'", model, monotonic() - began, folder)


def _commands(folder: Path, file: Path) -> tuple[str, Sequence[Sequence[str]]]:
    """The name of the installer, and the commands that make the environment and install into it.

    Raises InvalidArgumentError where there is neither uv nor pip.
    """
    python = str(folder / "bin" / "python")
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        return "uv", [make, [uv, "pip", "install", "--python", python, "--requirement", str(file)]]
    if PathFinder.find_spec("pip") is None:  # importlib.util would have setuptools give up its distutils for pip
        raise InvalidArgumentError(
            f"no environment can be built from '{file}': the server has neither uv nor pip; install one beside it"
        )
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--no-input"]
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    return "pip", [make, [*pip, "install", "--requirement", str(file)]]

"""Files and configurations that a client sends with a load request: which of them are code, or choose a program."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from naiad_config.errors import ConfigError, Problem
from naiad_config.model import ModelConfig

Files = Mapping[str, bytes]
"""The contents of files by their paths in a model's folder, such as `1/model.onnx`."""

Paths = Sequence[str]
"""Paths of files in a model's folder."""

_SUFFIXES = {".py", ".pyc", ".pyd", ".pth", ".so", ".dll", ".dylib", ".whl", ".egg", ".zip", ".gz", ".tgz", ".tar"}
_NAMES = {"requirements.txt"}
_CONFIGURATION = "config.pbtxt"
_ENVIRONMENTS = ("python", "EXECUTION_ENV_PATH")
"""Model parameters that name the interpreter of a model's process."""


def is_code(file: PurePath) -> bool:
    """Whether a file may be executed, by its name: sources, shared libraries, packages and archives of them."""
    return file.name in _NAMES or not _SUFFIXES.isdisjoint(file.suffixes)


def sent_paths(config: str, files: Files | None) -> Paths:
    """What a load request brings: its files, and its configuration under the name of the file that it replaces."""
    return (*(files or ()), *([_CONFIGURATION] if config else ()))


def refuse_code(sent: Paths, config: ModelConfig, executes: bool) -> None:
    """Raise ConfigError, naming the file or parameter, if what a client sent is code, or chooses a program.

    `executes` says whether every file is a program to the backend, as a model of Python or TorchScript is.
    """
    operations = config.model_operations
    libraries = {PurePath(name).name for name in (operations.op_library_filename if operations is not None else ())}
    for file in sorted(set(sent) - {_CONFIGURATION}):
        path = PurePath(file)
        if executes or is_code(path) or path.name in libraries:
            raise _refusal(f"file override '{file}' is code for the backend '{config.backend}'")
    for name in _ENVIRONMENTS if sent else ():
        if name in config.parameters:
            raise _refusal(
                f"parameter '{name}' chooses the program that runs model '{config.name}'", f"parameters.{name}"
            )


def _refusal(message: str, key: str = "") -> ConfigError:
    hint = (
        "this server takes code from its model repositories alone; put it there, or start the server with "
        "--allow-uploaded-code if everyone who may load models may also run code on it"
    )
    return ConfigError([Problem(message, key, hint=hint)])

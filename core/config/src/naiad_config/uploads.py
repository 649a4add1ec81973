"""Files of models that a client sends with a load request: which of them are code."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from naiad_config.errors import ConfigError, Problem

Files = Mapping[str, bytes]
"""The contents of files by their paths in a model's folder, such as `1/model.onnx`."""

Paths = Sequence[str]
"""Paths of files in a model's folder."""

_SUFFIXES = {".py", ".pyc", ".pyd", ".pth", ".so", ".dll", ".dylib", ".whl", ".egg", ".zip", ".gz", ".tgz", ".tar"}
_NAMES = {"requirements.txt"}


def is_code(file: PurePath) -> bool:
    """Whether a file may be executed, by its name: sources, shared libraries, packages and archives of them."""
    return file.name in _NAMES or not _SUFFIXES.isdisjoint(file.suffixes)


def refuse_code(files: Paths, backend: str, executes: bool) -> None:
    """Raise ConfigError, naming the file, if one of these files is code for that backend.

    `executes` says whether every file is a program to the backend, as a model of Python or TorchScript is.
    """
    for file in sorted(files):
        if executes or is_code(PurePath(file)):
            message = f"file override '{file}' is code for the backend '{backend}'"
            hint = (
                "this server takes code from its model repositories alone; put it there, or start the server with "
                "--allow-uploaded-code if everyone who may load models may also run code on it"
            )
            raise ConfigError([Problem(message, "", hint=hint)])

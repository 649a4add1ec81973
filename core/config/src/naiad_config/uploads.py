"""Files and configurations that a client sends with a load request: which of them are code, or choose a program."""

from collections.abc import Iterator, Mapping, Sequence
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
_PATHS = ("_path", "_paths")
"""How parameters of accelerators end that name files: libraries with plugins, caches of engines."""


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
    named = set(_named_files(config))
    for file in sorted(set(sent) - {_CONFIGURATION}):
        path = PurePath(file)
        if executes or is_code(path) or path.name in named:
            raise _refusal(f"file override '{file}' is code for the backend '{config.backend}'")
    for name in _ENVIRONMENTS if sent else ():
        if name in config.parameters:
            raise _refusal(
                f"parameter '{name}' chooses the program that runs model '{config.name}'", f"parameters.{name}"
            )
    for key, name in _accelerator_paths(config) if _CONFIGURATION in sent else ():
        raise _refusal(f"parameter '{name}' of an accelerator names files that model '{config.name}' may execute", key)


def _named_files(config: ModelConfig) -> Iterator[str]:
    """The names of files that the configuration may have the backend load as libraries: all that parameters name."""
    if config.model_operations is not None:
        yield from (PurePath(name).name for name in config.model_operations.op_library_filename)
    yield from (PurePath(parameter.string_value).name for parameter in config.parameters.values())


def _accelerator_paths(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """The parameters of accelerators that name files, such as trt_extra_plugin_lib_paths: key and name."""
    policy = config.optimization
    accelerators = None if policy is None else policy.execution_accelerators
    if accelerators is None:
        return
    for side in ("gpu_execution_accelerator", "cpu_execution_accelerator"):
        for index, accelerator in enumerate(getattr(accelerators, side)):
            for name in accelerator.parameters:
                if name.endswith(_PATHS):
                    yield f"optimization.execution_accelerators.{side}[{index}].parameters[{name}]", name


def _refusal(message: str, key: str = "") -> ConfigError:
    hint = (
        "this server takes code from its model repositories alone; put it there, or start the server with "
        "--allow-uploaded-code if everyone who may load models may also run code on it"
    )
    return ConfigError([Problem(message, key, hint=hint)])

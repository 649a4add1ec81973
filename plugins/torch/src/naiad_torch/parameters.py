"""Reading what a configuration says about running a model with PyTorch."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from naiad.config import ModelConfig
from naiad.config.mistakes import nearest
from naiad.errors import ConfigError, Problem
from naiad.options import boolean

_T = TypeVar("_T")
_YES, _NO = ("yes", "on"), ("no", "off")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to run a model; None leaves a matter to PyTorch.

    `compile` are the arguments of `torch.compile` for a module in Python, None where it is not asked for;
    `init_library` is a library that prepares the process for a package, relative to the model's folder.
    """

    inference_mode: bool = True
    optimized_execution: bool = True
    cudnn: bool = True
    cleans_cache: bool = False
    shares_weights: bool = False
    tensor_fuser: bool | None = None
    jit_profiling: bool | None = None
    jit_executor: bool | None = None
    intra_op_threads: int | None = None
    inter_op_threads: int | None = None
    compile: Mapping[str, Any] | None = None
    init_library: str = ""


_KEYS = (
    "DISABLE_OPTIMIZED_EXECUTION",
    "INFERENCE_MODE",
    "DISABLE_CUDNN",
    "ENABLE_CACHE_CLEANING",
    "CACHE_CLEANING_ENABLED",
    "ENABLE_WEIGHT_SHARING",
    "ENABLE_TENSOR_FUSER",
    "ENABLE_JIT_PROFILING",
    "ENABLE_JIT_EXECUTOR",
    "ENABLE_NVFUSER",
    "INTER_OP_THREAD_COUNT",
    "INTRA_OP_THREAD_COUNT",
    "NUM_THREADS",
    "NUM_INTEROP_THREADS",
    "TORCH_COMPILE_OPTIONAL_PARAMETERS",
    "MODEL_INIT_LIBRARY",
)


def run_settings(config: ModelConfig) -> RunSettings:
    """The settings of a model. Raises ConfigError with all values that make no sense.

    Keys in capitals are PyTorch's, and one that is not known is an error; all others belong to somebody else.
    """
    reader = _Reader(config)
    in_python = bool(config.runtime)
    threads = 1 if in_python else None
    settings = RunSettings(
        inference_mode=reader.flag("INFERENCE_MODE", True),
        optimized_execution=not reader.flag("DISABLE_OPTIMIZED_EXECUTION", False),
        cudnn=not reader.flag("DISABLE_CUDNN", False),
        cleans_cache=reader.flag("ENABLE_CACHE_CLEANING", False) or reader.flag("CACHE_CLEANING_ENABLED", False),
        shares_weights=reader.flag("ENABLE_WEIGHT_SHARING", False),
        tensor_fuser=reader.flag("ENABLE_TENSOR_FUSER", None),
        jit_profiling=reader.flag("ENABLE_JIT_PROFILING", None),
        jit_executor=reader.flag("ENABLE_JIT_EXECUTOR", None),
        intra_op_threads=reader.read("NUM_THREADS", _count, reader.read("INTRA_OP_THREAD_COUNT", _count, threads)),
        inter_op_threads=reader.read(
            "NUM_INTEROP_THREADS", _count, reader.read("INTER_OP_THREAD_COUNT", _count, threads)
        ),
        compile=reader.read("TORCH_COMPILE_OPTIONAL_PARAMETERS", _compile_arguments, None),
        init_library=reader.texts.get("MODEL_INIT_LIBRARY", ""),
    )
    reader.flag("ENABLE_NVFUSER", None)
    reader.refuse_unknown()
    if reader.problems:
        raise ConfigError(reader.problems)
    return settings


class _Reader:
    """Reads the parameters of one configuration and gathers what is wrong with them."""

    def __init__(self, config: ModelConfig) -> None:
        self.texts = {key: parameter.string_value for key, parameter in config.parameters.items()}
        self.problems: list[Problem] = []

    def read(self, key: str, parse: Callable[[str], _T], default: _T) -> _T:
        text = self.texts.get(key, "")
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            self.problems.append(Problem(f"'{key}' cannot be '{text}': {error}", f"parameters[{key}]"))
            return default

    def flag(self, key: str, default: Any) -> Any:
        return self.read(key, _flag, default)

    def refuse_unknown(self) -> None:
        for key in self.texts:
            if key.isupper() and key not in _KEYS:
                near = nearest(key, _KEYS, 0.6)
                hint = f"did you mean '{near}'?" if near else f"known are {', '.join(_KEYS)}"
                self.problems.append(Problem(f"PyTorch has no parameter '{key}'", f"parameters[{key}]", hint=hint))


def _flag(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in _YES or lowered in _NO:
        return lowered in _YES
    return boolean(lowered)


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("it must be a whole number") from None
    if number < 1:
        raise ValueError("it must be at least 1")
    return number


def _compile_arguments(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it must be a JSON object ({error})") from None
    if not isinstance(found, dict):
        raise ValueError("it must be a JSON object")
    if "model" in found:
        raise ValueError("'model' is the model itself")
    return found

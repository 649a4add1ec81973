"""Parameters of a configuration for PyTorch: inference mode, threads, TorchScript and compile options."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from naiad.errors import Problem
from naiad.options import boolean
from naiad_config import ModelConfig
from naiad_kit.backends.parameters import KnownNames, ParameterReader, positive_count


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to run a model; None leaves a matter to PyTorch.

    `releases_lock` runs a compiled package without the interpreter's lock (see `naiad_torch.unlocked`).
    `compile` are the arguments of `torch.compile` for a module in Python, None where it is not asked for;
    `init_library` is a library that prepares the process for a package, relative to the model's folder.
    """

    inference_mode: bool = True
    optimized_execution: bool = True
    cleans_cache: bool = False
    shares_weights: bool = False
    releases_lock: bool = False
    tensor_fuser: bool | None = None
    jit_profiling: bool | None = None
    jit_executor: bool | None = None
    disable_cudnn: bool | None = None
    intra_op_threads: int | None = None
    inter_op_threads: int | None = None
    compile: Mapping[str, Any] | None = None
    init_library: str = ""


NAMES = KnownNames(
    "PyTorch",
    (
        "DISABLE_OPTIMIZED_EXECUTION",
        "INFERENCE_MODE",
        "DISABLE_CUDNN",
        "ENABLE_CACHE_CLEANING",
        "CACHE_CLEANING_ENABLED",
        "ENABLE_WEIGHT_SHARING",
        "RELEASE_INTERPRETER_LOCK",
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
    ),
)


def run_settings(config: ModelConfig, settings: Mapping[str, str]) -> RunSettings:
    """The settings of a model; `settings` are the `--backend-config` values.

    Raises ConfigError with all invalid values, and names that are misspelt.
    """
    reader = ParameterReader(config, settings)
    chosen = RunSettings(
        inference_mode=reader.read("INFERENCE_MODE", boolean, True),
        optimized_execution=not reader.read("DISABLE_OPTIMIZED_EXECUTION", boolean, False),
        cleans_cache=reader.read("ENABLE_CACHE_CLEANING", boolean, False)
        or reader.read("CACHE_CLEANING_ENABLED", boolean, False),
        shares_weights=reader.read("ENABLE_WEIGHT_SHARING", boolean, False),
        releases_lock=reader.read("RELEASE_INTERPRETER_LOCK", boolean, False),
        tensor_fuser=reader.read("ENABLE_TENSOR_FUSER", boolean, None),
        jit_profiling=reader.read("ENABLE_JIT_PROFILING", boolean, None),
        jit_executor=reader.read("ENABLE_JIT_EXECUTOR", boolean, None),
        disable_cudnn=reader.read("DISABLE_CUDNN", boolean, None),
        intra_op_threads=reader.read(
            "NUM_THREADS", positive_count, reader.read("INTRA_OP_THREAD_COUNT", positive_count, None)
        ),
        inter_op_threads=reader.read(
            "NUM_INTEROP_THREADS", positive_count, reader.read("INTER_OP_THREAD_COUNT", positive_count, None)
        ),
        compile=reader.read("TORCH_COMPILE_OPTIONAL_PARAMETERS", _compile_arguments, None),
        init_library=reader.texts.get("MODEL_INIT_LIBRARY", ""),
    )
    reader.read("ENABLE_NVFUSER", boolean, None)
    reader.refuse_misspelt(NAMES)
    reader.problems.extend(_accelerators(config))
    reader.finish()
    return chosen


def _accelerators(config: ModelConfig) -> Iterator[Problem]:
    """PyTorch has none: log what Triton would ignore."""
    policy = config.optimization
    accelerators = policy.execution_accelerators if policy is not None else None
    for kind in ("gpu", "cpu"):
        for index, accelerator in enumerate(getattr(accelerators, f"{kind}_execution_accelerator", ())):
            yield Problem(
                f"PyTorch has no accelerator '{accelerator.name}'",
                f"optimization.execution_accelerators.{kind}_execution_accelerator[{index}].name",
                hint="remove it; to make a model faster, compile it with AOTInductor (model.pt2)",
            )


def _compile_arguments(text: str) -> Mapping[str, Any]:
    try:
        options = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it must be a JSON object ({error})") from None
    if not isinstance(options, dict):
        raise ValueError("it must be a JSON object")
    if "model" in options:
        raise ValueError("'model' is the model itself")
    return options

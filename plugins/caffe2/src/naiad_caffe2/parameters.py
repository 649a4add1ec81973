"""Reading what a configuration says about running a model."""

from collections.abc import Mapping
from dataclasses import dataclass

from naiad.errors import Problem
from naiad.options import boolean
from naiad_config import ModelConfig
from naiad_kit.backends.parameters import KnownNames, ParameterReader, count

NAMES = KnownNames("ONNX Runtime", ("intra_op_thread_count", "inter_op_thread_count", "execution_mode"))
_GRAPH_LEVELS = {0: "ORT_ENABLE_ALL", -1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to run a model: threads (0 is one a core) and the name of an `onnxruntime.GraphOptimizationLevel`."""

    intra_op_threads: int = 0
    inter_op_threads: int = 0
    parallel: bool = False
    graph_level: str = "ORT_ENABLE_ALL"


def run_settings(config: ModelConfig, settings: Mapping[str, str]) -> RunSettings:
    """The settings of a model; `settings` are the `--backend-config` values.

    Raises ConfigError with all values that make no sense, names that are misspelt, and for accelerators.
    """
    reader = ParameterReader(config, settings)
    policy = config.optimization
    level = policy.graph.level if policy is not None and policy.graph is not None else 0
    if level not in _GRAPH_LEVELS:
        message, hint = (
            f"there is no graph optimisation level {level}",
            "use 0 (all), 1 (extended), -1 (basic), 2 (none)",
        )
        reader.problems.append(Problem(message, "optimization.graph.level", hint=hint))
    if policy is not None and policy.execution_accelerators is not None:
        reader.problems.append(
            Problem(
                "there are no execution accelerators for nets of Caffe2",
                "optimization.execution_accelerators",
                hint="remove them; KIND_GPU runs the net with CUDA",
            )
        )
    found = RunSettings(
        intra_op_threads=reader.read("intra_op_thread_count", count, 0),
        inter_op_threads=reader.read("inter_op_thread_count", count, 0),
        parallel=reader.read("execution_mode", boolean, False),
        graph_level=_GRAPH_LEVELS.get(level, ""),
    )
    reader.refuse_misspelt(NAMES)
    reader.finish()
    return found

"""Parameters of a configuration and settings of the backend for running an engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from naiad.options import boolean
from naiad_config import ModelConfig, ModelPriority, OptimizationCuda
from naiad_kit.backends.parameters import KnownNames, ParameterReader, count
from naiad_tensorrt.options import ExecutionOptions

_STRATEGY, _BUDGET = "execution_context_allocation_strategy", "weight_streaming_budget"
NAMES = KnownNames(
    "TensorRT",
    (_STRATEGY, _BUDGET),
    settings=("coalesce-request-input", "execution-policy", "plugins", "version-compatible"),
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to run a model.

    `libraries` hold plugins that engines use; `version_compatible` trusts the code that an engine brings along.
    `weight_budget` is the bytes of weights to keep on the device, None to leave that to TensorRT. `execution` has
    neither profiles nor graphs yet, which need the engine.
    """

    libraries: tuple[Path, ...] = ()
    version_compatible: bool = False
    weight_budget: int | None = None
    execution: ExecutionOptions = ExecutionOptions()  # noqa: RUF009 - it is frozen


def run_settings(config: ModelConfig, settings: Mapping[str, str]) -> RunSettings:
    """The settings of a model; `settings` are the `--backend-config` values.

    Raises ConfigError with all invalid values, and names that are misspelt.
    """
    reader = ParameterReader(config, settings)
    reader.setting("coalesce-request-input", boolean, False)
    reader.setting("execution-policy", _policy, "")
    chosen = RunSettings(
        libraries=tuple(Path(path) for path in settings.get("plugins", "").split(";") if path),
        version_compatible=reader.setting("version-compatible", boolean, False),
        weight_budget=reader.read(_BUDGET, count, None),
        execution=_execution(config, reader.read(_STRATEGY, _strategy, "STATIC")),
    )
    reader.refuse_misspelt(NAMES)
    reader.finish()
    return chosen


def without_effect(config: ModelConfig) -> list[str]:
    """The keys of `optimization` in the configuration that have no effect on an engine."""
    policy = config.optimization
    if policy is None:
        return []
    accelerators, cuda = policy.execution_accelerators, policy.cuda or OptimizationCuda()
    present = {
        "graph.level": policy.graph is not None and policy.graph.level != 0,
        "execution_accelerators": accelerators is not None
        and bool(accelerators.gpu_execution_accelerator or accelerators.cpu_execution_accelerator),
        "cuda.graph_spec": bool(cuda.graph_spec) and not cuda.graphs,
    }
    return [f"optimization.{key}" for key, is_present in present.items() if is_present]


def _execution(config: ModelConfig, strategy: str) -> ExecutionOptions:
    policy = config.optimization
    if policy is None:
        return ExecutionOptions(allocation_strategy=strategy)
    cuda = policy.cuda or OptimizationCuda()
    return ExecutionOptions(
        busy_wait_events=cuda.busy_wait_events,
        pinned_input=policy.input_pinned_memory is None or policy.input_pinned_memory.enable,
        pinned_output=policy.output_pinned_memory is None or policy.output_pinned_memory.enable,
        output_copy_stream=cuda.output_copy_stream,
        priority=ModelPriority(policy.priority),
        allocation_strategy=strategy,
    )


def _strategy(text: str) -> str:
    return _one_of(text, ("STATIC", "ON_PROFILE_CHANGE"))


def _policy(text: str) -> str:
    return _one_of(text, ("DEVICE_BLOCKING", "BLOCKING"))


def _one_of(text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ValueError(f"it must be {' or '.join(known)}")
    return text

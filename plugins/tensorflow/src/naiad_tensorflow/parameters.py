"""Parameters of a configuration for TensorFlow: session options, accelerators and backend settings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from naiad.errors import Problem
from naiad.options import boolean
from naiad_config import ModelConfig
from naiad_config.optimization import Accelerator
from naiad_kit.backends.parameters import KnownNames, ParameterReader, count

NAMES = KnownNames(
    "TensorFlow",
    (
        "TF_NUM_INTRA_THREADS",
        "TF_NUM_INTER_THREADS",
        "TF_USE_PER_SESSION_THREADS",
        "TF_GRAPH_TAG",
        "TF_SIGNATURE_DEF",
        "MAX_SESSION_SHARE_COUNT",
        "TF_INIT_OPS_FILE",
    ),
    settings=("allow-soft-placement", "gpu-memory-fraction", "version"),
)
_TENSORRT: Mapping[str, tuple[str, str | int]] = {
    "precision_mode": ("precision_mode", "FP32"),
    "minimum_segment_size": ("minimum_segment_size", 3),
    "max_workspace_size_bytes": ("max_workspace_size_bytes", 1 << 30),
    "max_cached_engines": ("maximum_cached_engines", 100),
}
"""What TensorFlow's optimiser (`TRTOptimizationPass::Init`) calls each parameter, and the default of configurations."""

_ACCELERATORS = ("tensorrt", "auto_mixed_precision", "gpu_io")  # the last has no effect: tensors go through the host
_PRECISIONS = ("FP32", "FP16", "INT8")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How to run a model.

    A count of threads of 0 leaves it to TensorFlow. `tags` are those that the graph of a SavedModel must have, and
    `shared_by` is how many instances share a session at most. `jit_level` is that of XLA (-1 off, 0 TensorFlow's own,
    1 and 2 on). `tensorrt` are the parameters of the optimiser that puts TensorRT into the graph, None without it.
    `memory_fraction` is the part of a GPU's memory to take at most, 0 takes what is needed.
    """

    intra_op_threads: int = 0
    inter_op_threads: int = 0
    per_session_threads: bool = False
    tags: tuple[str, ...] = ("serve",)
    signature: str = "serving_default"
    shared_by: int = 1
    init_ops_file: str = ""
    jit_level: int = 0
    mixed_precision: bool = False
    tensorrt: Mapping[str, str | int] | None = None
    soft_placement: bool = True
    memory_fraction: float = 0.0
    libraries: tuple[str, ...] = ()

    @property
    def runs_in_caller(self) -> bool:
        """Whether operators run one by one on the thread of the instance: with one thread there is no use for another.

        A crossing to another thread and back takes 4 to 90 µs, depending on how deeply the processor sleeps meanwhile.
        """
        return self.inter_op_threads == 1


def run_settings(config: ModelConfig, backend: Mapping[str, str]) -> RunSettings:
    """The settings of a model; `backend` are the `--backend-config` values.

    Raises ConfigError with all invalid values, and names that are misspelt.
    """
    reader = _Reader(config, backend)
    policy = config.optimization
    graph = policy.graph if policy is not None else None
    operations = config.model_operations
    settings = RunSettings(
        intra_op_threads=reader.read("TF_NUM_INTRA_THREADS", count, 0),
        inter_op_threads=reader.read("TF_NUM_INTER_THREADS", count, 0),
        per_session_threads=reader.read("TF_USE_PER_SESSION_THREADS", boolean, False),
        tags=reader.read("TF_GRAPH_TAG", _tags, ("serve",)),
        signature=reader.texts.get("TF_SIGNATURE_DEF", "") or "serving_default",
        shared_by=reader.read("MAX_SESSION_SHARE_COUNT", count, 1) or 1,
        init_ops_file=reader.texts.get("TF_INIT_OPS_FILE", ""),
        jit_level=max(-1, min(2, graph.level)) if graph is not None else 0,
        soft_placement=reader.setting("allow-soft-placement", boolean, True),
        memory_fraction=reader.setting("gpu-memory-fraction", _fraction, 0.0),
        libraries=tuple(operations.op_library_filename) if operations is not None else (),
        mixed_precision=reader.accelerator("auto_mixed_precision") is not None,
        tensorrt=reader.tensorrt(),
    )
    reader.refuse_accelerators()
    reader.refuse_misspelt(NAMES)
    reader.finish()
    return settings


class _Reader(ParameterReader):
    """Reads the accelerators of a configuration as well."""

    def accelerator(self, name: str) -> tuple[str, Accelerator] | None:
        """The GPU accelerator of that name and its path, None where it is not asked for."""
        return next(((path, each) for path, each in self._accelerators("gpu") if each.name == name), None)

    def tensorrt(self) -> Mapping[str, str | int] | None:
        """The parameters of the optimiser that puts TensorRT into the graph, None where it is not asked for."""
        selected = self.accelerator("tensorrt")
        if selected is None:
            return None
        path, accelerator = selected
        values = dict(_TENSORRT.values())
        for key, text in accelerator.parameters.items():
            where = f"{path}.parameters[{key}]"
            name, default = _TENSORRT.get(key, ("", 0))
            if not name:
                hint = f"known are {', '.join(_TENSORRT)}"
                self.problems.append(Problem(f"'{key}' is not a parameter of TensorRT here", where, hint=hint))
            elif key == "precision_mode":
                values[name] = self.parsed(key, text, _precision, default, where)
            else:
                values[name] = self.parsed(key, text, count, default, where)
        return values

    def refuse_accelerators(self) -> None:
        for path, accelerator in self._accelerators("cpu"):
            self.problems.append(Problem(f"TensorFlow has no accelerator '{accelerator.name}' on a CPU", path))
        for path, accelerator in self._accelerators("gpu"):
            if accelerator.name not in _ACCELERATORS:
                hint = f"there are {', '.join(_ACCELERATORS)}"
                self.problems.append(Problem(f"unknown accelerator '{accelerator.name}'", f"{path}.name", hint=hint))

    def _accelerators(self, kind: str) -> Iterator[tuple[str, Accelerator]]:
        policy = self.config.optimization
        accelerators = policy.execution_accelerators if policy is not None else None
        key = f"{kind}_execution_accelerator"
        for index, accelerator in enumerate(getattr(accelerators, key, ())):
            yield f"optimization.execution_accelerators.{key}[{index}]", accelerator


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag.strip() for tag in text.split(","))


def _fraction(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("it must be a number") from None
    if not 0 <= number <= 1:
        raise ValueError("it must be between 0 and 1")
    return number


def _precision(text: str) -> str:
    if text.upper() not in _PRECISIONS:
        raise ValueError(f"it must be one of {', '.join(_PRECISIONS)}")
    return text.upper()
